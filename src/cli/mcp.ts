import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { ClientError } from "../client/client-error.ts";
import { guestName } from "../contract/guests.ts";
import { encodeWorkspace, WORKSPACE_HEADER, type Workspace } from "../contract/workspace.ts";
import { reachDaemon } from "./background-daemon.ts";
import { findRunning } from "./connect.ts";
import type { McpUpstream } from "./mcp-upstream.ts";
import { workspaceOf } from "./repository.ts";
import { type GlobalOptions, say, sayError } from "./terminal.ts";

export interface McpOptions extends GlobalOptions {
  readonly name?: string;
  readonly workspace?: string;
}

/** A daemon that has just gone may be restarting: somebody else's start comes first for so long. */
const PATIENCE_MS = 3_000;

function workspaceAt(folder: string | undefined): Promise<Workspace> {
  if (folder === undefined) return workspaceOf(process.cwd(), process.env.PWD);
  if (!existsSync(folder)) throw new ClientError("usage.wrong", `--workspace: there is no folder ${folder}`);
  return workspaceOf(folder, resolve(folder));
}

/** MCP on stdio: joins the home's daemon under a name of its own, and carries messages until the client closes stdin. */
export async function mcp(options: McpOptions): Promise<number> {
  if (options.name !== undefined && !guestName.safeParse(options.name).success)
    throw new ClientError("usage.wrong", "--name: expected lowercase letters, digits, - and _, at most 56");
  const [{ StdioServerTransport }, { McpBridge }, { McpIdentity }, { McpUpstream: Upstream }, workspace] = await Promise.all([
    import("@modelcontextprotocol/server/stdio"),
    import("./mcp-bridge.ts"),
    import("./mcp-identity.ts"),
    import("./mcp-upstream.ts"),
    workspaceAt(options.workspace),
  ]);
  let identity: InstanceType<typeof McpIdentity> | undefined;
  let known: string | undefined;
  const { promise: over, resolve: end } = Promise.withResolvers<number>();

  const connect = async (
    client: string,
    urgent: boolean,
    onMessage: (message: JSONRPCMessage) => void,
    onLost: () => void,
  ): Promise<McpUpstream> => {
    const operator = urgent ? await reachDaemon(options, identity ? PATIENCE_MS : 0) : await findRunning(options);
    if (!operator) throw new ClientError("daemon.not_running", "no daemon runs on this home");
    if (!identity) {
      identity = new McpIdentity(client, options.name, workspace);
      identity.onLost = onLost;
    }
    try {
      await identity.join(operator);
    } catch (error) {
      // Somebody has sent us away: coming back by another door would be no answer to that.
      if (error instanceof ClientError && error.code === "request.forbidden") {
        sayError(error.message, error.code, error.hint);
        end(1);
      }
      throw error;
    }
    if (identity.name !== known) say(`guildhall: you are ${identity.name}, in ${workspace.repository}`);
    known = identity.name;
    const headers = { authorization: `Bearer ${identity.token}`, [WORKSPACE_HEADER]: encodeWorkspace(workspace) };
    const up = new Upstream(operator.url, headers, onMessage, onLost);
    await up.start();
    return up;
  };

  const down = new StdioServerTransport();
  const bridge = new McpBridge(down, connect);
  await bridge.start();
  down.onclose = () => end(0);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => end(0));
  const exit = await over;
  await bridge.close();
  await identity?.leave();
  process.exit(exit);
}
