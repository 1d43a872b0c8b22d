import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { McpServers } from "../../src/abilities/tools/mcp/mcp-servers.ts";
import type { LinkLimits } from "../../src/abilities/tools/mcp/server-link.ts";
import type { CallContext, Tool, ToolOutcome } from "../../src/abilities/tools/tool.ts";
import { configSchema } from "../../src/contract/config.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import type { Log } from "../../src/kernel/log.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Approvals } from "../../src/records/access/approvals.ts";
import type { Agent } from "../../src/records/agents/agent.ts";
import { type Revision, revisionWithoutFile } from "../../src/records/agents/revision.ts";
import type { Store } from "../../src/store/store.ts";
import type { StorePlace } from "../stores.ts";

const WORKER = new URL("./mcp-server-worker.ts", import.meta.url).pathname;

export interface WrittenTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: object;
  readonly annotations?: object;
}

/** The servers of agents with everything they rest on, and none of the rest of a daemon. */
export class McpHouse {
  readonly home = mkdtempSync(join(tmpdir(), "guildhall-mcp-client-"));
  readonly log: string[] = [];
  readonly store: Store;
  readonly approvals: Approvals;
  readonly servers: McpServers;
  readonly #place: StorePlace;
  #revisions = 0;
  revision: Revision;

  private constructor(place: StorePlace, store: Store, limits: Partial<LinkLimits>) {
    this.#place = place;
    this.store = store;
    this.approvals = new Approvals(store, idSource(systemClock, systemRandom));
    const write = (level: string) => (message: string, fields?: object) =>
      void this.log.push(`${level} ${message} ${JSON.stringify(fields)}`);
    const log: Log = { info: write("info"), warn: write("warn"), error: write("error"), debug: write("debug") };
    this.servers = this.newServers(limits, log);
    this.revision = revisionWithoutFile(configSchema.parse({}), this.home);
  }

  static async open(place: StorePlace, limits: Partial<LinkLimits> = {}): Promise<McpHouse> {
    return new McpHouse(place, await place.open(), limits);
  }

  /** As another daemon would have them. */
  newServers(limits: Partial<LinkLimits> = {}, log?: Log): McpServers {
    const { store, approvals } = this;
    const quiet: Log = { info: () => {}, warn: () => {}, error: () => {} };
    const environment = { PATH: String(process.env.PATH) };
    return new McpServers({
      store,
      approvals,
      clock: systemClock,
      random: systemRandom,
      log: log ?? quiet,
      environment,
      version: "1",
      limits,
    });
  }

  /** From now on the agent `main` has these servers. */
  configure(mcp: Record<string, unknown>): void {
    const revision = revisionWithoutFile(configSchema.parse({ agents: { main: { mcp } } }), this.home);
    this.revision = { ...revision, number: ++this.#revisions };
  }

  /** The hostile server, offering these. */
  worker(mode: string, tools: readonly WrittenTool[], more: object = {}): object {
    this.offer(tools);
    return { command: process.execPath, args: [WORKER, mode, join(this.home, "tools.json"), join(this.home, "notes.txt")], ...more };
  }

  offer(tools: readonly WrittenTool[]): void {
    writeFileSync(join(this.home, "tools.json"), JSON.stringify(tools.map((tool) => ({ inputSchema: { type: "object" }, ...tool }))));
  }

  /** What the hostile server has noticed. */
  get notes(): string[] {
    return readFileSync(join(this.home, "notes.txt"), "utf8").trim().split("\n");
  }

  get agent(): Agent {
    return this.revision.agents.get("main") as Agent;
  }

  async tools(servers = this.servers): Promise<Map<string, Tool>> {
    const tools = await servers.toolsOf(this.agent, this.revision, new AbortController().signal);
    return new Map(tools.map((tool) => [tool.name, tool]));
  }

  async call(tool: Tool | undefined, args: unknown = {}, signal = new AbortController().signal): Promise<ToolOutcome> {
    if (!tool?.run) throw new Error("there is no such tool");
    const context = { agent: this.agent, revision: this.revision, signal, progress: () => {} } as unknown as CallContext;
    return tool.run(tool.parse(args), context);
  }

  async remove(): Promise<void> {
    await this.servers.stop();
    await this.#place.remove();
    rmSync(this.home, { recursive: true, force: true });
  }
}
