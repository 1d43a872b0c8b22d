import {
  type SessionFilter,
  type SessionHits,
  type SessionList,
  type SessionSearchRequest,
  sessionHits,
  sessionList,
  type TranscriptFilter,
  type TranscriptPage,
  transcriptPage,
  type WhereAnswer,
  type WhereQuery,
  whereAnswer,
} from "../contract/sessions.ts";
import { type Run, run } from "../contract/wire.ts";
import type { ApiClient } from "./api-client.ts";

/** Conversations that the token's identity may see. */
export class SessionsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(filter: SessionFilter = {}): Promise<SessionList> {
    return this.#api.get(sessionList, "/api/sessions", filter);
  }

  read(key: string, filter: TranscriptFilter = {}): Promise<TranscriptPage> {
    return this.#api.get(transcriptPage, `/api/sessions/${encodeURIComponent(key)}`, filter);
  }

  /** With whom a conversation is now, handovers included. */
  where(address: WhereQuery): Promise<WhereAnswer> {
    return this.#api.get(whereAnswer, "/api/sessions/where", address);
  }

  search(request: SessionSearchRequest): Promise<SessionHits> {
    return this.#api.get(sessionHits, "/api/sessions/search", request);
  }

  run(runId: string): Promise<Run> {
    return this.#api.get(run, `/api/runs/${encodeURIComponent(runId)}`);
  }

  /** Ended already: `run.over`. */
  stop(runId: string): Promise<Run> {
    return this.#api.post(run, `/api/runs/${encodeURIComponent(runId)}/stop`, {});
  }
}
