import { Failure } from "../../kernel/failure.ts";
import { Roster } from "../../kernel/roster.ts";
import type { Credential } from "./credential.ts";

export interface CallLimits {
  /** Requests that are being answered at once, streams left out. */
  readonly requests: number;
  readonly streams: number;
  readonly streamsPerToken: number;
  /** Requests and streams: whoever lets many wait must leave room for the others. */
  readonly callsPerToken: number;
}

/** Which of these tokens are still valid, as the database says now. */
export type StillValid = (tokenIds: readonly string[]) => Promise<ReadonlySet<string>>;

/** A revoked token is to be cut off within a second; the look itself takes time too. */
const LOOK_EVERY_MS = 400;
/** A node that cannot ask the database cannot know: what streams on it ends after so long. */
const UNSURE_MS = 10_000;

/** What is being answered now, for whom: to bound it, and to end it when its token is revoked. */
export class OpenCalls {
  readonly #limits: CallLimits;
  readonly #stillValid: StillValid;
  readonly #byToken = new Map<string, Roster<number, AbortController>>();
  #begun = 0;
  readonly #streamsOf = new Map<string, number>();
  #requests = 0;
  #streams = 0;
  #looking: NodeJS.Timeout | undefined;
  #sureAt = 0;

  constructor(limits: CallLimits, stillValid: StillValid) {
    this.#limits = limits;
    this.#stillValid = stillValid;
  }

  get counts(): { readonly requests: number; readonly streams: number } {
    return { requests: this.#requests, streams: this.#streams };
  }

  /** Every request is counted from its first moment, before anybody knows whose it is. */
  begin(): () => void {
    if (this.#requests >= this.#limits.requests) throw new Failure("request.busy", "too many requests at once");
    this.#requests++;
    return () => {
      this.#requests--;
    };
  }

  beginStream(credential: Credential): () => void {
    const whose = credential.tokenId ?? credential.caller.name;
    const own = this.#streamsOf.get(whose) ?? 0;
    if (this.#streams >= this.#limits.streams || own >= this.#limits.streamsPerToken)
      throw new Failure("request.busy", "too many event streams are open", {
        hint: "Close streams you no longer read, then open this one.",
      });
    this.#streams++;
    this.#streamsOf.set(whose, own + 1);
    return () => {
      this.#streams--;
      const left = (this.#streamsOf.get(whose) ?? 1) - 1;
      if (left > 0) this.#streamsOf.set(whose, left);
      else this.#streamsOf.delete(whose);
    };
  }

  /** To be asked before `guard`. The operator's own token is not counted: it must be able to look when others have filled everything. */
  refuseCrowd({ tokenId }: Credential): void {
    if (tokenId !== null && (this.#byToken.get(tokenId)?.size ?? 0) >= this.#limits.callsPerToken)
      throw new Failure("request.busy", "this token has too many requests open at once");
  }

  /** A signal that aborts soon after the token is revoked. To be let go of when the call has ended. */
  guard(credential: Credential): { readonly signal: AbortSignal; release(): void } {
    const controller = new AbortController();
    const id = credential.tokenId;
    if (id === null) return { signal: controller.signal, release: () => {} };
    const open = this.#byToken.get(id) ?? new Roster();
    const number = this.#begun++;
    open.set(number, controller);
    this.#byToken.set(id, open);
    if (this.#looking === undefined) {
      this.#sureAt = performance.now();
      this.#lookLater();
    }
    return {
      signal: controller.signal,
      release: () => {
        open.delete(number);
        if (open.size === 0 && this.#byToken.get(id) === open) this.#byToken.delete(id);
      },
    };
  }

  #lookLater(): void {
    this.#looking = setTimeout(() => void this.#look(), LOOK_EVERY_MS);
    this.#looking.unref();
  }

  async #look(): Promise<void> {
    const ids = [...this.#byToken.keys()];
    if (ids.length === 0) {
      this.#looking = undefined;
      return;
    }
    try {
      const valid = await this.#stillValid(ids);
      this.#sureAt = performance.now();
      for (const id of ids) if (!valid.has(id)) this.#cutOff(id);
    } catch {
      if (performance.now() - this.#sureAt > UNSURE_MS) for (const id of ids) this.#cutOff(id);
    }
    this.#lookLater();
  }

  #cutOff(id: string): void {
    for (const controller of [...(this.#byToken.get(id)?.values() ?? [])]) controller.abort();
  }
}
