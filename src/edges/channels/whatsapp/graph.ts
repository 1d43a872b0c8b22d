import { z } from "zod";
import { shortText } from "../http-calls.ts";

/** The one whose answers this was written for. Meta keeps a version for two years. */
const VERSION = "v25.0";
const MAX_ANSWER_BYTES = 1_048_576;

const graphAnswer = z.object({
  error: z.object({
    message: z.string().default(""),
    code: z.number().default(0),
    error_subcode: z.number().optional(),
    error_data: z.object({ details: z.string().optional() }).optional(),
  }),
});

/** What Meta's Graph API refuses. `code` 0: not in its own words. */
export class GraphRefusal extends Error {
  readonly status: number;
  readonly code: number;
  readonly subcode: number | null;
  readonly headers: Headers;

  constructor(status: number, headers: Headers, said: string) {
    const { message, code, subcode } = refusalIn(said);
    super(`${message.slice(0, 500)} (${code === 0 ? `HTTP ${status}` : `code ${code}`})`);
    this.name = "GraphRefusal";
    this.status = status;
    this.headers = headers;
    this.code = code;
    this.subcode = subcode;
  }
}

function refusalIn(said: string): { readonly message: string; readonly code: number; readonly subcode: number | null } {
  const { data } = graphAnswer.safeParse(jsonIn(said));
  if (!data) return { message: "WhatsApp has refused the request", code: 0, subcode: null };
  const { message, code, error_subcode: subcode = null, error_data: more } = data.error;
  return { message: more?.details && more.details !== message ? `${message}: ${more.details}` : message, code, subcode };
}

/** Meta's Graph API, as one account. */
export class Graph {
  readonly #base: URL;
  readonly #token: () => string;

  constructor(base: string, token: () => string) {
    this.#base = new URL(base);
    this.#token = token;
  }

  get(path: string, signal: AbortSignal): Promise<unknown> {
    return this.#call(path, { signal });
  }

  post(path: string, body: FormData | object, signal: AbortSignal): Promise<unknown> {
    if (body instanceof FormData) return this.#call(path, { method: "POST", body, signal });
    return this.#call(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal });
  }

  /** Of an address that the API has named. The token goes nowhere that could be listened to. */
  async open(address: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const url = new URL(address);
    if (url.protocol !== "https:" && url.origin !== this.#base.origin) throw new Error("WhatsApp names an address without encryption");
    const response = await this.#fetch(url, { signal });
    if (response.body) return response.body;
    throw new Error("WhatsApp has sent nothing");
  }

  async #call(path: string, init: RequestInit): Promise<unknown> {
    const prefix = this.#base.pathname.replace(/\/+$/, "");
    const response = await this.#fetch(new URL(`${prefix}/${VERSION}/${path}`, this.#base), init);
    return jsonIn(await shortText(response, MAX_ANSWER_BYTES));
  }

  async #fetch(url: URL, init: RequestInit): Promise<Response> {
    const token = this.#token();
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    const response = await fetch(url, { ...init, headers });
    if (response.ok) return response;
    // Meta repeats a token that it cannot read.
    throw new GraphRefusal(response.status, response.headers, (await shortText(response)).replaceAll(token, "[token]"));
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
