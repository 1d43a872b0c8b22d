import { isIP } from "node:net";
import { Failure } from "../../../kernel/failure.ts";
import { isPublicAddress } from "../../../kernel/public-address.ts";

const MAX_CHARACTERS = 4_096;
const LOCAL_NAMES = /^(localhost|.*\.localhost|.*\.local|.*\.internal|.*\.home\.arpa|.*\.localdomain)$/;

/** A URL that may be asked for, as far as its own words tell. */
export interface CheckedUrl {
  readonly url: URL;
  /** The host without brackets: a name, or an address. */
  readonly host: string;
  /** The operator has said that this host may be asked although it is not public. */
  readonly excepted: boolean;
}

/**
 * Refuses what can only be meant to lead somewhere else than it says. Names are looked up later; an address has to be written as everybody writes it,
 * because the programs on the way disagree about octal, hexadecimal and short ones.
 */
export function checkedUrl(text: string, privateHosts: readonly string[], base?: URL): CheckedUrl {
  if (text.length > MAX_CHARACTERS) throw new Failure("web.refused", `an address of ${text.length} characters is too long`);
  let url: URL;
  try {
    url = new URL(text, base);
  } catch {
    throw new Failure("web.refused", `"${text.slice(0, 200)}" is not an address`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Failure("web.refused", `${url.protocol} is neither http: nor https:`);
  const authority = authorityIn(text.trim());
  if (authority === null && !base) throw new Failure("web.refused", `"${text.slice(0, 200)}" is not an address`);
  // `http://@host` has an empty user, of which the parser tells nothing.
  if (url.username !== "" || url.password !== "" || authority?.includes("@"))
    throw new Failure("web.refused", "an address with a user name in it is refused", { hint: "Leave out everything before the @." });
  url.hash = "";
  const host = url.hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
  const excepted = isExcepted(url, host, privateHosts);
  if (isIP(host) !== 0) {
    // What the parser has made an address of, and was written differently: 2130706433, 0x7f.1, 0177.0.0.1, ::ffff:7f00:1.
    if (isIP(host) === 4 && authority !== null && authority.replace(/:\d*$/, "") !== host)
      throw refused(host, "an address must be written as four decimal numbers");
    if (!excepted && !isPublicAddress(host)) throw refused(host);
  } else if (!excepted && (LOCAL_NAMES.test(host) || !host.includes("."))) throw refused(host);
  return { url, host, excepted };
}

export function refused(host: string, because = "it is not a public address"): Failure {
  return new Failure("web.refused", `"${host.slice(0, 200)}" is not asked: ${because}`);
}

/** `host` or `host:port`, as the operator wrote it. */
function isExcepted(url: URL, host: string, privateHosts: readonly string[]): boolean {
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  const shown = host.includes(":") ? `[${host}]` : host;
  const names = [host, shown, `${shown}:${port}`];
  return privateHosts.some((written) => names.includes(written.toLowerCase()));
}

/** What stands for the host in the text itself, with its user and port; null where the text names none. */
function authorityIn(text: string): string | null {
  return /^(?:[a-z][a-z0-9+.-]*:)?[\\/]{2}([^\\/?#]*)/i.exec(text)?.[1] ?? null;
}
