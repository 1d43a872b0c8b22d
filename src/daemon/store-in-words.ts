import { homedir } from "node:os";
import { parsePostgresUrl } from "../store/postgres/postgres-url.ts";

/** Where the data is, without user and password. */
export function storeInWords(location: string): string {
  if (!location.startsWith("sqlite:")) return `PostgreSQL, ${parsePostgresUrl(location).place}`;
  const path = location.slice("sqlite:".length);
  return `SQLite, ${path.startsWith(`${homedir()}/`) ? `~${path.slice(homedir().length)}` : path}`;
}
