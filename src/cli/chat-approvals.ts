import type { ApiClient } from "../client/api-client.ts";
import { ApprovalsClient } from "../client/approvals.ts";
import { ClientError } from "../client/client-error.ts";
import type { Approval } from "../contract/approvals.ts";
import type { AskPerson } from "./chat-lines.ts";
import { harmless, paint, say } from "./terminal.ts";

const YES = /^\s*(y|yes)\s*$/i;
const NO = /^\s*(n|no)\s*$/i;
/** Nobody says yes to what they cannot see. */
const LONGEST_SHOWN = 20_000;

/** Puts the questions of one run before the person who waits for it, one after another, each once. */
export class Approver {
  readonly #approvals: ApprovalsClient;
  readonly #runId: string;
  readonly #askPerson: AskPerson | null;
  readonly #over = new AbortController();
  readonly #known = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  /** `askPerson` null: nobody is there to be asked; then it is said where it can be answered. */
  constructor(client: ApiClient, runId: string, askPerson: AskPerson | null) {
    this.#approvals = new ApprovalsClient(client);
    this.#runId = runId;
    this.#askPerson = askPerson;
  }

  /** The run is over: questions that are still open are nobody's any more. */
  close(): void {
    this.#over.abort();
  }

  /** Whatever of this run is asked now, for whoever came too late to hear it. Answers whether there was anything. */
  async askAll(): Promise<boolean> {
    const { approvals } = await this.#approvals.list({ state: "asked" });
    const mine = approvals.filter(({ run }) => run === this.#runId);
    await Promise.all(mine.map(({ id }) => this.ask(id)));
    return mine.length > 0;
  }

  async ask(id: string): Promise<void> {
    if (this.#known.has(id)) return;
    this.#known.add(id);
    const turn = this.#last.then(() => this.#askOne(id));
    this.#last = turn.catch(() => {});
    await turn;
  }

  async #askOne(id: string): Promise<void> {
    const { approvals } = await this.#approvals.list({ state: "asked" });
    const approval = approvals.find((each) => each.id === id);
    if (!approval || this.#over.signal.aborted) return;
    say(inWords(approval));
    if (this.#askPerson === null || approval.shown.length > LONGEST_SHOWN)
      return say(`(it waits for \`guildhall approvals approve ${id}\`, or deny)`);
    for (;;) {
      const answer = await this.#askPerson("allow it? (y/n) ", this.#over.signal);
      if (answer === null) return;
      const verdict = YES.test(answer) ? "approve" : NO.test(answer) ? "deny" : undefined;
      if (verdict === undefined) continue;
      await this.#approvals.answer(id, verdict).catch((error: unknown) => {
        // Somebody else was quicker.
        if (!(error instanceof ClientError) || error.code !== "approval.closed") throw error;
        say(`(${error.message})`);
      });
      return;
    }
  }
}

/** The arguments as they would be used, and nothing hidden in them: this is what the person says yes to. */
function inWords({ agent, tool, shown }: Approval): string {
  const { yellow } = paint(process.stderr);
  const text = shown.length > LONGEST_SHOWN ? `${shown.slice(0, LONGEST_SHOWN).toWellFormed()}… (${shown.length} characters)` : shown;
  return `${yellow(`${harmless(agent)} wants to call ${harmless(tool)}`)} with\n  ${harmless(text)}`;
}
