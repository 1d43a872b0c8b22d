import { setTimeout as sleep } from "node:timers/promises";

const AGAIN_MS = 50;

/** Brings posts to a daemon as platforms do: one after another, and each again until it is taken. */
export class Courier {
  readonly #waiting: (() => Promise<Response>)[] = [];
  #running = false;
  #closed = false;
  #target: string | undefined;

  get target(): string {
    if (this.#target === undefined) throw new Error("no daemon has started yet");
    return this.#target;
  }

  attach(target: string): void {
    this.#target = target;
    void this.#run();
  }

  /** `post` is called anew for every attempt, so that it is signed then. */
  add(post: () => Promise<Response>): void {
    this.#waiting.push(post);
    void this.#run();
  }

  close(): void {
    this.#closed = true;
  }

  async #run(): Promise<void> {
    if (this.#running || this.#target === undefined) return;
    this.#running = true;
    while (this.#waiting.length > 0 && !this.#closed) {
      const isTaken = await (this.#waiting[0] as () => Promise<Response>)().then(
        async (response) => {
          await response.arrayBuffer();
          return response.ok;
        },
        () => false,
      );
      if (isTaken) this.#waiting.shift();
      else await sleep(AGAIN_MS);
    }
    this.#running = false;
  }
}

/** Trouble that is to be made, for the next so many requests or until it is over. */
export class Troubles<Kind extends string> {
  #kind: Kind | "none" = "none";
  #left = 0;
  #chat: string | undefined;

  set(kind: Kind | "none", times: number, chat: string | undefined): void {
    this.#kind = kind;
    this.#left = times;
    this.#chat = chat;
  }

  /** What is to happen to this request. */
  next(chat: string): Kind | "none" {
    if (this.#kind === "none" || this.#left <= 0 || (this.#chat !== undefined && this.#chat !== chat)) return "none";
    this.#left--;
    return this.#kind;
  }

  isOn(kind: Kind): boolean {
    return this.#kind === kind && this.#left > 0;
  }
}
