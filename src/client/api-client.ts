import type { z } from "zod";
import { ERRORS } from "../contract/errors.ts";
import {
  type Admission,
  admission,
  errorBody,
  type Health,
  health,
  LIVE_EVENTS,
  type LiveEvent,
  type NewMessage,
  type Run,
} from "../contract/wire.ts";
import { ClientError } from "./client-error.ts";
import { readServerSentEvents, type ServerSentEvent } from "./server-sent-events.ts";

const HEALTH_MS = 2_000;
const AGAIN_MS = 500;

type Headers = Readonly<Record<string, string>>;

export type RunProgress = LiveEvent | { readonly kind: "done"; readonly run: Run };

/** The daemon's API as functions. Whatever goes wrong is a ClientError; no answer at all is `daemon.not_running`. */
export class ApiClient {
  readonly url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.url = url;
    this.#token = token;
  }

  health(): Promise<Health> {
    return this.#json(health, "/healthz", { signal: AbortSignal.timeout(HEALTH_MS) });
  }

  /** Safe to repeat: a message with the same platform, account and id runs once. */
  send(message: NewMessage): Promise<Admission> {
    return this.#json(admission, "/api/messages", { method: "POST", body: JSON.stringify(message) });
  }

  /** The run as it happens; the last thing is the finished run. A stream that breaks off before is `daemon.not_running`. */
  async *follow(runId: string): AsyncGenerator<RunProgress, void, void> {
    const response = await this.#fetch(`/api/runs/${encodeURIComponent(runId)}/live`, {});
    if (!response.body) throw this.#silent();
    try {
      for await (const { event, data } of readServerSentEvents(response.body)) {
        if (!isLiveEvent(event)) continue;
        const told = JSON.parse(data);
        if (event !== "done") {
          yield { kind: event, ...LIVE_EVENTS[event].parse(told) } as LiveEvent;
          continue;
        }
        yield { kind: "done", run: LIVE_EVENTS.done.parse(told) };
        return;
      }
    } catch (error) {
      throw this.#silent(error);
    }
    throw this.#silent();
  }

  /** For the rooms' own files: one request whose answer has a known shape. */
  get<Schema extends z.ZodType>(schema: Schema, path: string, query: object = {}): Promise<z.output<Schema>> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    return this.#json(schema, search.size === 0 ? path : `${path}?${search}`, {});
  }

  post<Schema extends z.ZodType>(schema: Schema, path: string, body: unknown, signal?: AbortSignal): Promise<z.output<Schema>> {
    return this.#json(schema, path, { method: "POST", body: JSON.stringify(body), ...(signal ? { signal } : {}) });
  }

  put<Schema extends z.ZodType>(schema: Schema, path: string, body: unknown, headers: Headers = {}): Promise<z.output<Schema>> {
    return this.#json(schema, path, { method: "PUT", body: JSON.stringify(body), headers });
  }

  remove<Schema extends z.ZodType>(schema: Schema, path: string, headers: Headers = {}): Promise<z.output<Schema>> {
    return this.#json(schema, path, { method: "DELETE", headers });
  }

  /**
   * The events of a stream after number `after` (null: as the path says), in order, once each: a connection that breaks is opened again
   * after the last event seen.
   * Ends with the signal; a refusal is thrown, unless it says to come again later and `patienceMs` are not over yet.
   */
  async *watch(
    path: string,
    after: number | null,
    signal: AbortSignal,
    patienceMs = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<ServerSentEvent, void, void> {
    let last = after === null ? null : String(after);
    let lostAt = performance.now();
    while (!signal.aborted) {
      try {
        const response = await this.#fetch(path, { signal, headers: last === null ? {} : { "last-event-id": last } });
        try {
          for await (const event of readServerSentEvents(response.body ?? new ReadableStream())) {
            if (event.id !== null) last = event.id;
            yield event;
          }
        } finally {
          lostAt = performance.now();
        }
      } catch (error) {
        if (signal.aborted) return;
        const isLong = performance.now() - lostAt >= patienceMs;
        if (error instanceof ClientError && (isLong || ERRORS[error.code].retry !== "later")) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  async #json<Schema extends z.ZodType>(schema: Schema, path: string, init: RequestInit): Promise<z.output<Schema>> {
    const response = await this.#fetch(path, init);
    const body: unknown = await response.json().catch((error: unknown) => {
      throw this.#silent(error);
    });
    const result = schema.safeParse(body);
    if (result.success) return result.data;
    throw new ClientError("daemon.not_running", `${this.url} answers, but not as a Guildhall daemon does`, { cause: result.error });
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = { ...(init.headers as Headers), authorization: `Bearer ${this.#token}`, "content-type": "application/json" };
    const response = await fetch(`${this.url}${path}`, { ...init, headers }).catch((error: unknown) => {
      throw this.#silent(error);
    });
    if (response.ok) return response;
    const refusal = errorBody.safeParse(await response.json().catch(() => null));
    if (!refusal.success)
      throw new ClientError("daemon.not_running", `${this.url} answers ${response.status}, but not as a Guildhall daemon does`);
    const { code, message, hint, details } = refusal.data.error;
    throw new ClientError(code, message, { hint, details });
  }

  #silent(cause?: unknown): ClientError {
    return new ClientError("daemon.not_running", `no daemon answers at ${this.url}`, { cause });
  }
}

/** A newer daemon may tell more than we know of. */
function isLiveEvent(name: string): name is keyof typeof LIVE_EVENTS {
  return Object.hasOwn(LIVE_EVENTS, name);
}
