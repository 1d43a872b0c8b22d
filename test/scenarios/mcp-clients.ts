import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CallToolResult, Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { encodeWorkspace, WORKSPACE_HEADER, type Workspace } from "../../src/contract/workspace.ts";
import { LAUNCHER } from "../launcher.ts";
import type { RunningDaemon } from "./guildhall.ts";

const DOCS = new URL("../../docs/mcp.md", import.meta.url).pathname;

/** The snippet of the docs that a repository shares, as an MCP client runs it. */
export function snippet(home: string, args: readonly string[] = []): { command: string; args: string[]; env: Record<string, string> } {
  const [block = ""] = /(?<=```json\n)[^`]+/.exec(readFileSync(DOCS, "utf8")) ?? [];
  const { args: shared } = (JSON.parse(block) as { mcpServers: { guildhall: { args: string[] } } }).mcpServers.guildhall;
  // Instead of the published package, this one.
  const own = [LAUNCHER, ...shared.slice(shared.indexOf("guildhall") + 1), ...args];
  return { command: process.execPath, args: own, env: { ...getDefaultEnvironment(), GUILDHALL_HOME: home } };
}

/** An official client, and what it was told by the way. */
export class Agent {
  readonly client: Client;
  readonly updated: string[] = [];

  constructor(name: string, options: ClientOptions = {}) {
    this.client = new Client({ name, version: "1.0.0" }, options);
    this.client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      this.updated.push(params.uri);
    });
  }

  static async stdio(
    home: string,
    cwd: string,
    options: { name?: string; args?: readonly string[]; client?: ClientOptions } = {},
  ): Promise<Agent> {
    const agent = new Agent(options.name ?? "claude-code", options.client);
    await agent.client.connect(new StdioClientTransport({ ...snippet(home, options.args), cwd, stderr: "ignore" }));
    return agent;
  }

  static async http(daemon: RunningDaemon, token: string, workspace?: Workspace, client?: ClientOptions): Promise<Agent> {
    const agent = new Agent("some-editor", client);
    const headers = { authorization: `Bearer ${token}`, ...(workspace ? { [WORKSPACE_HEADER]: encodeWorkspace(workspace) } : {}) };
    await agent.client.connect(new StreamableHTTPClientTransport(new URL(`${daemon.url}/mcp`), { requestInit: { headers } }));
    return agent;
  }

  async call(name: string, args: Record<string, unknown> = {}): Promise<Answer> {
    const result = (await this.client.callTool({ name, arguments: args })) as CallToolResult;
    const data = (result.structuredContent ?? {}) as Record<string, unknown>;
    return { refused: result.isError === true, data, error: (data.error ?? {}) as Answer["error"], text: textOf(result) };
  }

  async name(): Promise<string> {
    return (await this.call("whoami")).data.name as string;
  }

  close(): Promise<void> {
    return this.client.close();
  }
}

export interface Answer {
  readonly refused: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  readonly data: any;
  // biome-ignore lint/suspicious/noExplicitAny: likewise
  readonly error: { code?: string; hint?: string; details?: any };
  readonly text: string;
}

function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}

/** A token as an operator makes it. */
export async function guestToken(daemon: RunningDaemon, name: string): Promise<{ id: string; token: string }> {
  const response = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope: `guest:${name}` }) });
  return (await response.json()) as { id: string; token: string };
}

/** A git repository with one commit, in a folder of its own. */
export class Repository {
  readonly folder = mkdtempSync(join(tmpdir(), "guildhall-repository-"));
  readonly path = join(this.folder, "shop");

  constructor() {
    this.git(this.folder, "init", "-q", "-b", "main", "shop");
    this.write(this.path, "a.ts", "1\n");
    this.write(this.path, "b.ts", "1\n");
    this.git(this.path, "add", ".");
    this.git(this.path, "commit", "-qm", "first");
  }

  git(cwd: string, ...args: readonly string[]): string {
    const who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    return execFileSync("git", [...who, ...args], {
      cwd,
      encoding: "utf8",
      stdio: "pipe",
      env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null" },
    });
  }

  worktree(name: string): string {
    const path = join(this.folder, name);
    this.git(this.path, "worktree", "add", "-q", path, "-b", name);
    return path;
  }

  write(folder: string, file: string, content: string): void {
    writeFileSync(join(folder, file), content);
  }

  read(file: string): string {
    return readFileSync(join(this.path, file), "utf8");
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
