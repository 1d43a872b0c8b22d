import type { CommandAnswer } from "../../../acts/answer-command.ts";
import type { Placed } from "../../../acts/place-message.ts";
import type { TaskParts } from "../../../acts/tasks/task-parts.ts";
import type { Models } from "../../../kernel/model.ts";
import type { Approvals } from "../../../records/access/approvals.ts";
import type { Agent } from "../../../records/agents/agent.ts";
import type { Tx } from "../../../store/engine.ts";
import type { Store } from "../../../store/store.ts";
import type { Standing } from "./standing.ts";

/** What commands work on. */
export interface CommandParts {
  readonly store: Store;
  readonly models: Models;
  readonly approvals: Approvals;
  readonly tasks: TaskParts;
}

/** One command as it was given: by whom, in which conversation. */
export interface Talk {
  readonly args: readonly string[];
  /** `<platform>:<sender id>`, as the channel knows it. */
  readonly by: string;
  readonly standing: Standing;
  readonly agent: Agent;
  readonly sessionKey: string;
  readonly placed: Placed;
  /** What the rules say, whoever the conversation was handed over to; and what the sender may do in the session with that agent. */
  readonly ruled: { readonly agent: string; readonly sessionKey: string; readonly standing: Standing };
  /** The sender has named the agent: the conversation cannot be handed over. */
  readonly named: boolean;
  readonly agents: ReadonlyMap<string, Agent>;
}

export interface Command {
  readonly name: string;
  /** Its arguments, as one reads them in the help. */
  readonly takes: string;
  readonly least: number;
  readonly most: number;
  readonly help: string;
  /** The least standing of those who may use it. */
  readonly who: Standing;
  /** Checks first and writes then: what it refuses by throwing has changed nothing. */
  run(tx: Tx, talk: Talk, parts: CommandParts): Promise<CommandAnswer>;
}
