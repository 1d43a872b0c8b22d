import { readFileSync } from "node:fs";

/** From the package, which lies two folders up in a checkout and in an installation alike. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
  return version;
}
