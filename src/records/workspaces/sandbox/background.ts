import type { Clock } from "../../../kernel/clock.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { NewId } from "../../../kernel/ids.ts";
import { KeptOutput } from "./kept-output.ts";
import type { RunEnd, SandboxPlan } from "./sandbox.ts";
import type { Running, Sandboxes } from "./sandboxes.ts";

export interface BackgroundView {
  readonly id: string;
  readonly command: string;
  readonly startedAt: number;
  readonly state: "running" | "ended";
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly ended: RunEnd["ended"];
}

interface Entry {
  readonly id: string;
  readonly agent: string;
  /** Where it works: programs of one chat are not another's. */
  readonly workspace: string;
  readonly command: string;
  readonly startedAt: number;
  readonly running: Running;
  end: RunEnd | null;
}

const KEPT_TAIL = 256 * 1024;
const MAX_SHOWN_COMMAND = 200;

export interface BackgroundLimits {
  /** Running at once, of one agent. */
  readonly running: number;
  /** Of those that have ended, per agent: the newest. */
  readonly ended: number;
}
export const BACKGROUND_LIMITS: BackgroundLimits = { running: 8, ended: 16 };

/** Programs that go on after the call that started them, on this node. None outlives the daemon. */
export class BackgroundPrograms {
  readonly #sandboxes: Sandboxes;
  readonly #clock: Clock;
  readonly #newId: NewId;
  readonly #limits: BackgroundLimits;
  readonly #entries = new Map<string, Entry>();
  /** Counted while they are being started too, so that many at once are no more than one after another. */
  readonly #starting = new Map<string, number>();

  constructor(sandboxes: Sandboxes, parts: { readonly clock: Clock; readonly newId: NewId; readonly limits?: BackgroundLimits }) {
    this.#sandboxes = sandboxes;
    this.#clock = parts.clock;
    this.#newId = parts.newId;
    this.#limits = parts.limits ?? BACKGROUND_LIMITS;
  }

  async start(agent: string, plan: SandboxPlan, command: string): Promise<BackgroundView> {
    const starting = this.#starting.get(agent) ?? 0;
    const running = [...this.#entries.values()].filter((entry) => entry.agent === agent && entry.end === null).length;
    if (running + starting >= this.#limits.running)
      throw new Failure("request.busy", `${running + starting} programs run in the background already, as many as an agent may have`, {
        hint: "End one with the process tool first.",
      });
    this.#starting.set(agent, starting + 1);
    try {
      const entry: Entry = {
        id: this.#newId(),
        agent,
        workspace: plan.workspace,
        command: command.slice(0, MAX_SHOWN_COMMAND),
        startedAt: this.#clock.now(),
        running: await this.#sandboxes.start(plan, command, new KeptOutput(0, KEPT_TAIL)),
        end: null,
      };
      this.#entries.set(entry.id, entry);
      const over = (end: RunEnd | null): void => {
        entry.end = end ?? { code: null, signal: null, ended: null, output: "", cut: 0, hosts: null };
        this.#forgetOld(agent);
      };
      entry.running.over.then(over, () => over(null));
      return viewOf(entry);
    } finally {
      this.#starting.set(agent, (this.#starting.get(agent) ?? 1) - 1);
    }
  }

  list(agent: string, workspace: string): BackgroundView[] {
    return [...this.#entries.values()].filter((entry) => entry.agent === agent && entry.workspace === workspace).map(viewOf);
  }

  /** The last of what it has said. */
  output(agent: string, workspace: string, id: string): BackgroundView & { readonly output: string; readonly cut: number } {
    const entry = this.#entryOf(agent, workspace, id);
    return { ...viewOf(entry), output: entry.running.output.text, cut: entry.running.output.cut };
  }

  async end(agent: string, workspace: string, id: string): Promise<BackgroundView> {
    const entry = this.#entryOf(agent, workspace, id);
    entry.running.end("stopped");
    await entry.running.over.catch(() => {});
    return viewOf(entry);
  }

  /** Of agents for whom `gone` is true: they were paused, archived or taken out of the config. */
  async endOf(gone: (agent: string) => boolean): Promise<void> {
    const theirs = [...this.#entries.values()].filter((entry) => entry.end === null && gone(entry.agent));
    for (const entry of theirs) entry.running.end("stopped");
    await Promise.allSettled(theirs.map(({ running }) => running.over));
  }

  /** What is somebody else's is not there. */
  #entryOf(agent: string, workspace: string, id: string): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.agent !== agent || entry.workspace !== workspace)
      throw new Failure("request.not_found", `there is no program ${JSON.stringify(id.slice(0, 50))}`);
    return entry;
  }

  #forgetOld(agent: string): void {
    const ended = [...this.#entries.values()].filter((entry) => entry.agent === agent && entry.end !== null);
    for (const { id } of ended.slice(0, -this.#limits.ended)) this.#entries.delete(id);
  }
}

function viewOf({ id, command, startedAt, end }: Entry): BackgroundView {
  return {
    id,
    command,
    startedAt,
    state: end === null ? "running" : "ended",
    code: end?.code ?? null,
    signal: end?.signal ?? null,
    ended: end?.ended ?? null,
  };
}
