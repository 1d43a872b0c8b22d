import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import type { Tool } from "../../src/abilities/tools/tool.ts";
import { Toolbox } from "../../src/abilities/tools/toolbox.ts";
import { TURN_WORK } from "../../src/acts/work-kinds.ts";
import type { TurnParts } from "../../src/drivers/dispatch/prepare-turn.ts";
import { takeTurn } from "../../src/drivers/dispatch/take-turn.ts";
import type { Model, ModelCall, ModelRequest, ModelUsage } from "../../src/kernel/model.ts";
import { type RunInput, readRunInput } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { KnownTurns } from "../../src/turns/known-turns.ts";
import { quiet, turnParts } from "../turn-parts.ts";
import { newId, TalkingHouse } from "./sessions-place.ts";

export type Answer =
  | string
  | { readonly text?: string; readonly calls?: readonly ModelCall[]; readonly usage?: ModelUsage; readonly cut?: boolean };
export type Play = (request: ModelRequest, count: number) => Answer | Promise<Answer>;

/** A house whose agents answer as the test says, with tools that the test gives them; the test takes the turns. */
export class TurningHouse extends TalkingHouse {
  readonly folder = mkdtempSync(join(tmpdir(), "guildhall-turning-"));
  readonly asked: ModelRequest[] = [];
  play: Play = (request) => `re ${JSON.stringify(request.messages.at(-1))}`;
  contextTokens: number | undefined;
  seesImages = false;
  tools: readonly Tool[] = [];
  sources: TurnParts["sources"] | undefined;
  reached: TurnParts["reached"] = () => {};
  /** What the node knows that takes the turns. */
  past = new KnownTurns();
  /** Instead of what turns have otherwise. */
  parts: Partial<TurnParts> = {};

  constructor(store: Store, config: object = {}) {
    super(store, { agents: { main: { model: "test/model" } }, ...config });
  }

  readonly #model: Model = {
    name: "test/model",
    scripted: true,
    stream: (request) => this.#answer(request),
  };

  async *#answer(request: ModelRequest): ReturnType<Model["stream"]> {
    this.asked.push(request);
    const answer = await this.play(request, this.asked.length);
    const { text = "", calls = [], usage, cut = false } = typeof answer === "string" ? { text: answer } : answer;
    if (text !== "") yield { kind: "text", text };
    for (const call of calls) yield { kind: "call", call };
    if (usage) yield { kind: "usage", usage, cut };
  }

  claim(owner = "node"): Promise<ClaimedWork[]> {
    return this.store.queue.claim(owner, 1, 60_000, [TURN_WORK]);
  }

  /** Takes the next turn to wherever it comes. */
  async take(item?: ClaimedWork, lost = new AbortController()): Promise<void> {
    const [next] = item ? [item] : await this.claim();
    if (!next) throw new Error("there is no turn to take");
    const { seesImages } = this;
    const model: Model = { ...this.#model, seesImages, ...(this.contextTokens === undefined ? {} : { contextTokens: this.contextTokens }) };
    const parts = turnParts(this.store, newId, this.folder);
    const handler = takeTurn({
      ...parts,
      past: this.past,
      agents: this.agents,
      approvals: this.approvals,
      running: this.running,
      models: modelRegistry([{ name: "test", model: () => model, models: () => [] }]),
      toolbox: new Toolbox(async () => this.tools, [], [], quiet),
      sources: this.sources ?? parts.sources,
      reached: (point) => this.reached(point),
      ...this.parts,
    });
    await handler(next, lost.signal);
  }

  /** The node dies at this point: nothing of it comes after, and the turn is found again by the next. */
  async takeAndDieAt(point: Parameters<TurnParts["reached"]>[0]): Promise<void> {
    const [item] = await this.claim("dead");
    const lost = new AbortController();
    this.reached = (at) => {
      if (at !== point) return;
      lost.abort();
      throw new Error(`dead at ${at}`);
    };
    await this.take(item, lost);
    this.reached = () => {};
    if (!lost.signal.aborted) throw new Error(`${point} was not reached`);
    await this.store.transact("its lease ends", (tx) => tx.run`update work set lease_until = 0 where owner = 'dead'`);
    await this.store.queue.reap();
  }

  async input(runId: string): Promise<RunInput> {
    return (await readRunInput(this.store.read, runId)) as RunInput;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function call(tool: string, args: object = {}, id = `c-${tool}`): ModelCall {
  return { id, tool, args: JSON.stringify(args) };
}

/** The words of every message, in their order. */
export function wordsIn({ messages }: ModelRequest): string[] {
  return messages.map((message) =>
    message.role === "tool"
      ? `results: ${message.results.map(({ text }) => text).join(" | ")}`
      : `${message.role}: ${message.text}${message.role === "assistant" && message.calls?.length ? ` calls ${message.calls.map(({ tool }) => tool).join(", ")}` : ""}`,
  );
}
