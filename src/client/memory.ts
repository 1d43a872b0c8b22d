import { type Forgotten, forgotten, type MemoryFilter, type Note, type NoteList, note, noteList } from "../contract/memory.ts";
import type { ApiClient } from "./api-client.ts";

/** Notes that the token's identity may see. */
export class MemoryClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** The newest, or with `q` those that fit best. */
  list(filter: MemoryFilter = {}): Promise<NoteList> {
    return this.#api.get(noteList, "/api/memory", filter);
  }

  /** Also by the beginning of its id. */
  read(id: string): Promise<Note> {
    return this.#api.get(note, `/api/memory/${encodeURIComponent(id)}`);
  }

  forget(id: string): Promise<Forgotten> {
    return this.#api.remove(forgotten, `/api/memory/${encodeURIComponent(id)}`);
  }
}
