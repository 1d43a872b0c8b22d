import type { RunStepView, WorkflowRun } from "../contract/workflows.ts";
import { type Paint, paint } from "./terminal.ts";
import { stepLine, treeOf } from "./workflow-tree.ts";

interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** Where nobody says how wide a line may be. */
const COLUMNS = 80;
/** For times that go on. */
const AGAIN_MS = 500;
/** A tree that changes more often is a flicker. */
const CALM_MS = 60;

/** A run as it happens: at a terminal a tree that is drawn again in its place, elsewhere a line for each step that changes. */
export interface Progress {
  see(run: WorkflowRun): void;
  /** Something else is to be written below; nothing is drawn until `see` after `goOn`. */
  pause(): void;
  goOn(): void;
  /** The last state stays. */
  end(): void;
}

export function progressOn(screen: Screen, now: () => number = Date.now): Progress {
  const drawn = screen.isTTY === true && process.env.TERM !== "dumb";
  return drawn ? new Tree(screen, now) : new Lines(screen, now);
}

export const NO_PROGRESS: Progress = { see: () => {}, pause: () => {}, goOn: () => {}, end: () => {} };

class Tree implements Progress {
  readonly #screen: Screen;
  readonly #now: () => number;
  readonly #paint: Paint;
  #run: WorkflowRun | undefined;
  #height = 0;
  #paused = false;
  #soon: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(screen: Screen, now: () => number) {
    this.#screen = screen;
    this.#now = now;
    this.#paint = paint(screen);
  }

  see(run: WorkflowRun): void {
    this.#run = run;
    this.#timer ??= setInterval(() => this.#draw(), AGAIN_MS).unref();
    this.#soon ??= setTimeout(() => this.#draw(), CALM_MS).unref();
  }

  pause(): void {
    this.#draw();
    this.#paused = true;
  }

  /** What was written below stays there; the tree goes on under it. */
  goOn(): void {
    this.#paused = false;
    this.#height = 0;
  }

  end(): void {
    this.#paused = false;
    this.#draw();
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
  }

  #draw(): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    if (this.#run === undefined || this.#paused) return;
    const { columns = COLUMNS, rows } = this.#screen;
    const lines = treeOf(this.#run, this.#now(), { columns, rows: rows === undefined ? undefined : rows - 2 }, this.#paint);
    const back = this.#height === 0 ? "" : `\x1b[${this.#height}A`;
    // One write, so that no half of a picture is seen.
    this.#screen.write(`${back}\r\x1b[J${lines.join("\n")}\n`);
    this.#height = lines.length;
  }
}

class Lines implements Progress {
  readonly #screen: Screen;
  readonly #now: () => number;
  readonly #seen = new Map<string, string>();

  constructor(screen: Screen, now: () => number) {
    this.#screen = screen;
    this.#now = now;
  }

  see(run: WorkflowRun): void {
    for (const step of run.steps) {
      const state = stateOf(step);
      if (state === (this.#seen.get(step.id) ?? "waiting 0") || step.status === "ready") continue;
      this.#seen.set(step.id, state);
      this.#screen.write(`${stepLine(run, step, this.#now(), paint(this.#screen))}\n`);
    }
  }

  pause(): void {}
  goOn(): void {}
  end(): void {}
}

function stateOf({ status, attempts }: RunStepView): string {
  return `${status} ${attempts}`;
}
