import { isIP } from "node:net";
import type { MiddlewareHandler } from "hono";
import { Failure } from "../../kernel/failure.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "::1"];
const EVERYWHERE = ["0.0.0.0", "::"];

/**
 * A page on the internet can point a name of its own at this machine and so reach a daemon that listens on loopback only. It cannot
 * choose the Host its victim's browser then sends: names we do not know are refused, token or not.
 */
export function knownHost(configured: string): MiddlewareHandler {
  const known = new Set([...LOOPBACK, configured.toLowerCase()]);
  return async (context, next) => {
    const name = hostName(context.req.header("host"));
    // Listening everywhere, any address of this machine will do: a bare address is never somebody's rebound name.
    const allowed = name !== undefined && (known.has(name) || (EVERYWHERE.includes(configured) && isIP(name) !== 0));
    if (!allowed)
      throw new Failure("request.forbidden", "this Host is not one of ours", { hint: "Use the address that `guildhall start` printed." });
    await next();
  };
}

/** Browsers say which page sends a request; only our own may. */
export const ownOrigin: MiddlewareHandler = async (context, next) => {
  const origin = context.req.header("origin");
  if (origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== context.req.header("host")?.toLowerCase())) {
    throw new Failure("request.forbidden", "requests from other sites are refused", {
      hint: "Call the API from a program, or from our own pages.",
    });
  }
  await next();
};

function hostName(header: string | undefined): string | undefined {
  const url = header ? `http://${header}` : "";
  if (!URL.canParse(url)) return undefined;
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}
