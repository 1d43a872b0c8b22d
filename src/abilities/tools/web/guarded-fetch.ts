import { lookup } from "node:dns/promises";
import { isIP, type Socket } from "node:net";
import type { Readable } from "node:stream";
import type { buildConnector, Dispatcher } from "undici";
import { asFailure, Failure, isFailure } from "../../../kernel/failure.ts";
import { isPublicAddress } from "../../../kernel/public-address.ts";
import { readBounded } from "./bounded-body.ts";
import { type CheckedUrl, checkedUrl, refused } from "./public-url.ts";

export type Resolve = (host: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (host) => (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

export interface GuardedRequest {
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string;
  /** Hosts that may be asked although they are private, as `host` or `host:port`. */
  readonly privateHosts: readonly string[];
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly resolve?: Resolve;
}

export interface GuardedResponse {
  /** Where the answer came from, after redirects. */
  readonly url: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
  /** There was more than `maxBytes`. */
  readonly cut: boolean;
}

const TIMEOUT_MS = 20_000;
const MAX_BYTES = 5_000_000;
const MAX_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];

/**
 * Asks somebody outside. Every host on the way is looked up once, by us; all its addresses must be public; and the connection goes to the one that
 * was checked, whatever the name stands for a moment later. Redirects are checked in the same way. `undici` is loaded when it is first used.
 */
export async function guardedFetch(request: GuardedRequest): Promise<GuardedResponse> {
  const timeUp = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS);
  const signal = AbortSignal.any([request.signal, timeUp]);
  try {
    const first = checkedUrl(request.url, request.privateHosts);
    let next = first;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      // A key is for whoever it was meant for, and for nobody they send us to.
      const headers = next.url.origin === first.url.origin ? request.headers : {};
      const answer = await askOnce({ ...request, headers }, next, signal);
      if ("bytes" in answer) return answer;
      if (request.method === "POST") throw new Failure("tool.failed", `${next.url.host} answers with a redirect`);
      next = checkedUrl(answer.location, request.privateHosts, next.url);
    }
    throw new Failure("tool.failed", `${next.url.host} redirects more than ${MAX_REDIRECTS} times`);
  } catch (error) {
    request.signal.throwIfAborted();
    if (timeUp.aborted) throw new Failure("tool.timed_out", `the answer took longer than ${(request.timeoutMs ?? TIMEOUT_MS) / 1000} s`);
    throw isFailure(error) ? error : failureOf(error);
  }
}

async function askOnce(
  request: GuardedRequest,
  { url, host, excepted }: CheckedUrl,
  signal: AbortSignal,
): Promise<GuardedResponse | { readonly location: string }> {
  const address = await pinnedAddress(host, excepted, request.resolve ?? systemResolve, signal);
  const { Agent, request: ask, buildConnector: connectorOf } = await import("undici");
  const agent = new Agent({ connect: pinnedTo(connectorOf, host, address), pipelining: 0, maxOrigins: 1 });
  try {
    const answer: Dispatcher.ResponseData = await ask(url, {
      dispatcher: agent,
      method: request.method ?? "GET",
      headers: {
        "user-agent": "guildhall",
        accept: "text/html, text/*;q=0.9, */*;q=0.5",
        "accept-encoding": "gzip, br",
        ...request.headers,
      },
      ...(request.body === undefined ? {} : { body: request.body }),
      signal,
    });
    const headers = plainHeaders(answer.headers);
    const body = answer.body as Readable;
    if (REDIRECTS.includes(answer.statusCode) && headers.location !== undefined) {
      body.on("error", () => {}).destroy();
      return { location: headers.location };
    }
    const { bytes, cut } = await readBounded(body, headers["content-encoding"], request.maxBytes ?? MAX_BYTES);
    signal.throwIfAborted();
    return { url: url.href, status: answer.statusCode, headers, bytes, cut };
  } finally {
    await agent.destroy().catch(() => {});
  }
}

/** The one address to connect to. One that is not public among several is reason enough: the name is not what it seems. */
async function pinnedAddress(host: string, excepted: boolean, resolve: Resolve, signal: AbortSignal): Promise<string> {
  const found = isIP(host) === 0 ? await untilAborted(resolve(host), signal) : [host];
  const bad = excepted ? undefined : found.find((address) => !isPublicAddress(address));
  if (bad !== undefined) throw refused(host, `it leads to ${bad}, which is not a public address`);
  const [first] = found;
  if (first === undefined) throw new Failure("tool.failed", `${host} has no address`);
  return first;
}

function pinnedTo(connectorOf: typeof buildConnector, host: string, address: string): buildConnector.connector {
  const family = address.includes(":") ? 6 : 4;
  const connector = connectorOf({
    lookup: (_name, options, done) => {
      if (options.all) (done as unknown as (error: null, found: unknown) => void)(null, [{ address, family }]);
      else done(null, address, family);
    },
  });
  return (options, done) => {
    // An address in the URL is connected to without any lookup: it must be the one that was checked, and nothing else is connected to.
    if (
      options.hostname
        .replace(/^\[|\]$/g, "")
        .replace(/\.$/, "")
        .toLowerCase() !== host
    )
      return done(refused(options.hostname), null);
    connector(options, (...[error, socket]) => {
      if (error) return done(error, null);
      if (sameAddress(socket, address)) return done(null, socket);
      socket.destroy();
      done(refused(host, `the connection went to ${socket.remoteAddress}`), null);
    });
  };
}

function sameAddress(socket: Socket, address: string): boolean {
  const plain = (text: string | undefined): string => (text ?? "").toLowerCase().replace(/^::ffff:(?=\d+\.)/, "");
  return (
    plain(socket.remoteAddress) === plain(address) ||
    new URL(`http://[${mapped(socket.remoteAddress)}]`).host === new URL(`http://[${mapped(address)}]`).host
  );
}

/** As IPv6, in which one address has one spelling once it was parsed. */
function mapped(address = "::"): string {
  return address.includes(":") ? address : `::ffff:${address}`;
}

function plainHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? (value[0] ?? "") : value]],
    ),
  );
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

function failureOf(error: unknown): Failure {
  const { code } = error as { code?: string };
  const { message } = asFailure(error);
  const because = (error as { cause?: unknown }).cause;
  if (isFailure(because)) return because;
  return new Failure("tool.failed", `the address could not be fetched: ${message || code}`, { cause: error });
}
