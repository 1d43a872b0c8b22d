import { settleToolList, type ToolListParts } from "../../../acts/settle-tool-list.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { asFailure, Failure, isFailure } from "../../../kernel/failure.ts";
import type { Label } from "../../../kernel/label.ts";
import type { Log } from "../../../kernel/log.ts";
import type { Random } from "../../../kernel/random.ts";
import { shown } from "../../../kernel/shown.ts";
import type { Agent } from "../../../records/agents/agent.ts";
import { makeAgentHome } from "../../../records/agents/agent-home.ts";
import type { Revision } from "../../../records/agents/revision.ts";
import { type ToolList, toolHash } from "../../../records/mcp/tool-list.ts";
import type { CallContext, Tool, ToolOutcome, ToolSource } from "../tool.ts";
import { Connection, wordsOf } from "./connection.ts";
import { CALL_MS, mcpTool, type OfferedTool } from "./mcp-tool.ts";
import { outcomeOf } from "./outcome-of.ts";
import { LINK_LIMITS, type LinkLimits, ServerLink } from "./server-link.ts";
import { configKey, type ServerConfig, serverPlace } from "./server-place.ts";

export interface McpServersParts extends ToolListParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** What programs are started with beside what the config gives them. */
  readonly environment: Readonly<Record<string, string>>;
  readonly version: string;
  readonly limits?: Partial<LinkLimits>;
}

/** Why tools of a server are missing. */
export interface McpNote {
  readonly server: string;
  readonly code: "tool.unavailable";
  readonly message: string;
}

interface Known {
  readonly agent: string;
  readonly server: string;
  readonly key: string;
  readonly labels: readonly Label[];
  readonly link: ServerLink;
  note: McpNote | null;
  /** What was made of the last list. */
  made: { readonly hash: string; readonly tools: readonly Tool[] } | null;
}

const HEARD_PER_MINUTE = 60;
const MINUTE = 60_000;

/** The MCP servers of all agents: started when a turn or a call wants them, kept, and let go of. */
export class McpServers implements ToolSource {
  readonly #parts: McpServersParts;
  readonly #known = new Map<string, Known>();
  /** Of configs before this one, still in use or on their way out. */
  readonly #retired = new Set<ServerLink>();
  #revision: Revision | undefined;
  #isStopped = false;

  constructor(parts: McpServersParts) {
    this.#parts = parts;
  }

  /** What does not come in time is missing, and `notesOf` says why: no server holds up a turn for long, or another server. */
  async toolsOf(agent: Agent, revision: Revision, signal: AbortSignal): Promise<readonly Tool[]> {
    this.adopt(revision);
    // A turn may have begun with a config that is no longer the newest: the servers are those of the newest.
    const current = this.#revision?.agents.get(agent.id);
    if (this.#isStopped || !current) return [];
    const servers = Object.entries(current.mcp).map(([server, config]) => this.#find(agent.id, server, config));
    return (await Promise.all(servers.map((known) => this.#offered(known, signal)))).flat();
  }

  /** Why some of an agent's tools are missing, as of its last turn. */
  notesOf(agent: string): readonly McpNote[] {
    return [...this.#known.values()].flatMap((known) => (known.agent === agent && known.note ? [known.note] : []));
  }

  /** From now on this config holds: whoever is not in it, or otherwise, ends. */
  adopt(revision: Revision): void {
    if (this.#revision && revision.number < this.#revision.number) return;
    if (this.#revision === revision) return;
    this.#revision = revision;
    for (const [id, { agent, server, key, link }] of this.#known) {
      const config = revision.agents.get(agent)?.mcp;
      const now = config && Object.hasOwn(config, server) ? config[server] : undefined;
      if (now && configKey(now) === key) continue;
      this.#known.delete(id);
      link.retire();
      this.#retired.add(link);
    }
    for (const link of this.#retired) if (link.isOver) this.#retired.delete(link);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const links = [...this.#retired, ...[...this.#known.values()].map(({ link }) => link)];
    await Promise.all(links.map((link) => link.close()));
  }

  #find(agent: string, server: string, config: ServerConfig): Known {
    const id = JSON.stringify([agent, server]);
    const known = this.#known.get(id);
    if (known) return known;
    const labels: Label[] = config.trusted ? [] : ["external"];
    const fresh: Known = { agent, server, key: configKey(config), labels, link: this.#link(agent, server, config), note: null, made: null };
    this.#known.set(id, fresh);
    return fresh;
  }

  #link(agent: string, server: string, config: ServerConfig): ServerLink {
    const { clock, random, log, environment, version, limits } = this.#parts;
    const home = (this.#revision as Revision).settings.home;
    const place = serverPlace(agent, server, config, { home, environment, version, heard: this.#listener(agent, server) });
    return new ServerLink({
      server,
      clock,
      random,
      limits: { ...LINK_LIMITS, ...limits },
      open: async (signal, ended) => {
        if (place.kind === "child") makeAgentHome(home, agent);
        return Connection.open(place, signal, ended);
      },
      failed: (why) => log.warn("an MCP server failed; it is tried again when it is needed", { agent, server, why: shown(why) }),
    });
  }

  /** Servers may write as much as they like; the log takes a part of it. */
  #listener(agent: string, server: string): (line: string) => void {
    const { clock, log } = this.#parts;
    let since = 0;
    let count = 0;
    return (line) => {
      if (clock.now() - since > MINUTE) [since, count] = [clock.now(), 0];
      if (++count <= HEARD_PER_MINUTE) log.debug?.("an MCP server says", { agent, server, line: shown(line) });
    };
  }

  async #offered(known: Known, signal: AbortSignal): Promise<readonly Tool[]> {
    const { server } = known;
    try {
      const list = await known.link.list(signal);
      await this.#refuseChanged(known, list);
      known.note = null;
      if (known.made?.hash !== list.hash) {
        const tools = list.tools.map((tool) => mcpTool(server, tool, (...call) => this.#call(known.agent, ...call)));
        known.made = { hash: list.hash, tools };
      }
      return known.made.tools;
    } catch (error) {
      if (signal.aborted) throw error;
      const { message } = asFailure(error);
      if (known.note?.message !== message)
        this.#parts.log.warn("tools of an MCP server are missing", { agent: known.agent, server, why: shown(message) });
      known.note = { server, code: "tool.unavailable", message };
      return [];
    }
  }

  /** Whatever was offered before: only the list that is pinned now can be called. */
  async #refuseChanged({ agent, server }: Known, list: ToolList): Promise<void> {
    const verdict = await settleToolList(this.#parts, { agent, server }, list);
    if (verdict.kind === "pinned") return;
    const { approval } = verdict;
    throw new Failure(
      "tool.unavailable",
      `the MCP server ${server} has other tools than those that were taken; none of them can be called`,
      {
        hint:
          approval === null
            ? "Its list keeps changing; look at the server."
            : `Look at what has changed with \`guildhall approvals list\`; \`guildhall approvals approve ${approval}\` takes the new ones.`,
        details: { server, approval },
      },
    );
  }

  async #call(agent: string, tool: OfferedTool, args: unknown, context: CallContext): Promise<ToolOutcome> {
    const known = this.#known.get(JSON.stringify([agent, tool.server]));
    const { patienceMs } = { ...LINK_LIMITS, ...this.#parts.limits };
    if (!known || this.#isStopped) throw new Failure("tool.unavailable", `agent ${agent} has no MCP server ${tool.server} any more`);
    const attempt = (): Promise<ToolOutcome | "lost"> =>
      known.link.use(context.signal, patienceMs, (connection) => this.#callOn(known, connection, tool, args, context));
    try {
      const outcome = await attempt();
      // The server has forgotten the session, and so has not looked at the call.
      const settled = outcome === "lost" ? await attempt() : outcome;
      if (settled !== "lost") return settled;
      throw new Failure("tool.unavailable", `the MCP server ${tool.server} forgets its sessions at once`);
    } catch (error) {
      // A refusal may hold the server's own words, and is as much somebody else's as an answer.
      if (!isFailure(error, "tool.unavailable")) throw error;
      return { output: `${error.code}: ${error.message} ${error.hint}`, failed: true, labels: known.labels };
    }
  }

  async #callOn(
    known: Known,
    connection: Connection,
    tool: OfferedTool,
    args: unknown,
    { signal, progress }: CallContext,
  ): Promise<ToolOutcome | "lost"> {
    const { server, labels, link } = known;
    const list = await link.listOf(connection);
    await this.#refuseChanged(known, list);
    const now = list.tools.find(({ name }) => name === tool.name);
    if (!now || toolHash(now) !== tool.hash)
      throw new Failure("tool.unavailable", `${tool.name} of the MCP server ${server} is another tool now; the next turn is offered it`);
    try {
      const outcome = outcomeOf(await connection.call(tool.name, args, signal, CALL_MS, progress), labels);
      link.works();
      return outcome;
    } catch (error) {
      signal.throwIfAborted();
      const trouble = connection.fate ?? (isBroken(error) ? wordsOf(error) : null);
      if (trouble === null) return { output: `${server} refused: ${wordsOf(error)}`, failed: true, labels };
      link.drop(connection, trouble);
      if (statusOf(error) === 404) return "lost";
      return {
        output: `The MCP server ${server} broke off: ${trouble}. Whether it did what was asked is not known.`,
        failed: true,
        labels,
      };
    }
  }
}

const BROKEN: readonly unknown[] = ["CONNECTION_CLOSED", "SEND_FAILED", "NOT_CONNECTED", "REQUEST_TIMEOUT"];

/** The way to the server is broken, rather than the call refused. */
function isBroken(error: unknown): boolean {
  return error instanceof TypeError || statusOf(error) !== null || BROKEN.includes((error as { code?: unknown }).code);
}

function statusOf(error: unknown): number | null {
  const status = (error as { data?: { status?: unknown } }).data?.status;
  return typeof status === "number" ? status : null;
}
