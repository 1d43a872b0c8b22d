import { type Attempt, judge, type Reply } from "./attempt.ts";
import type { Canaries } from "./canaries.ts";
import { callMcp, inSession, resultIn } from "./mcp-connection.ts";
import { type Tenant, WORD } from "./plant.ts";

/** Tools that agents may call for themselves; all others name something of the victim's, and must refuse. */
const COMMON = ["whoami", "claims_list", "claim", "mail_send", "mail_read", "propose", "context_list", "task_open", "task_search"];

type Arguments = (victim: Tenant, attacker: Tenant) => Record<string, unknown>;

/** What is asked of each tool. One that is not here is reported. */
const TOOLS: Readonly<Record<string, Arguments>> = {
  whoami: () => ({}),
  context_read: ({ pool, entryKey }) => ({ pool, key: entryKey }),
  context_write: ({ pool, entryKey }) => ({ pool, key: entryKey, value: "x", if_version: 1 }),
  context_list: ({ pool }) => ({ pool }),
  context_history: ({ pool, entryKey }) => ({ pool, key: entryKey }),
  claim: ({ claim }) => ({ resource: claim.resource }),
  claim_renew: ({ claim }) => ({ resource: claim.resource }),
  claim_release: ({ claim }) => ({ resource: claim.resource }),
  claims_list: () => ({}),
  mail_send: ({ id }) => ({ to: id, type: "x", content: "x" }),
  mail_read: () => ({ max: 100, visibility_s: 1 }),
  mail_ack: ({ mailId, mailFence }) => ({ id: mailId, fence: mailFence }),
  mail_nack: ({ mailId, mailFence }) => ({ id: mailId, fence: mailFence }),
  propose: ({ pool, entryKey }, { id }) => ({ subject: "x", electorate: [id], rule: "all", writes: [{ pool, key: entryKey, value: "x" }] }),
  vote: ({ proposalId, proposalHash }) => ({ id: proposalId, vote: "veto", hash: proposalHash }),
  task_open: ({ id }) => ({ agent: id, goal: "x" }),
  task_check: ({ taskId }) => ({ id: taskId }),
  task_cancel: ({ taskId }) => ({ id: taskId }),
  task_search: () => ({ query: WORD }),
  proposal_check: ({ proposalId }) => ({ id: proposalId }),
};

export async function mcpAttempts(attacker: Tenant, victim: Tenant, canaries: Canaries): Promise<Attempt[]> {
  const { actor, mcpSession: own } = attacker;
  const attempts: Attempt[] = [];
  const ask = async (way: string, mustRefuse: boolean, session: string, method: string, params: unknown): Promise<void> => {
    attempts.push(
      judge(
        { kind: "mcp", way, mustRefuse, said: JSON.stringify(params) },
        withStatus(await callMcp(actor, session, method, params)),
        canaries,
      ),
    );
  };
  const listed = (resultIn(await callMcp(actor, own, "tools/list")).tools ?? []) as { readonly name: string }[];
  for (const { name } of listed) {
    const args = TOOLS[name];
    if (args) await ask(`tool ${name}`, !COMMON.includes(name), own, "tools/call", { name, arguments: args(victim, attacker) });
    else
      attempts.push({
        kind: "mcp",
        way: `tool ${name}`,
        outcome: "unprobed",
        detail: `unprobed tool ${name}: say in mcp-attempts.ts what to ask of it`,
      });
  }
  const entry = `guildhall://pools/${victim.pool}/${victim.entryKey}`;
  await ask("resources/list", false, own, "resources/list", {});
  for (const uri of ["guildhall://claims", "guildhall://mail"]) await ask(`resource ${uri}`, false, own, "resources/read", { uri });
  await ask("resource guildhall://pools/{pool}/{key}", true, own, "resources/read", { uri: entry });
  await ask("subscribe guildhall://pools/{pool}/{key}", true, own, "resources/subscribe", { uri: entry });
  // The victim's own session, with another's token.
  await ask("its session: mail_read", true, victim.mcpSession, "tools/call", { name: "mail_read", arguments: {} });
  await ask("its session: guildhall://mail", true, victim.mcpSession, "resources/read", { uri: "guildhall://mail" });
  for (const method of ["GET", "DELETE"]) {
    const reply = await actor.call(method, "/mcp", undefined, inSession(victim.mcpSession));
    attempts.push(judge({ kind: "mcp", way: `its session: ${method} /mcp`, mustRefuse: true }, reply, canaries));
  }
  return attempts;
}

/** The protocol answers 200 to what it refuses; what it says inside counts. */
function withStatus(reply: Reply): Reply {
  if (reply.status !== 200) return reply;
  if (reply.text.includes('"code":"request.malformed"')) return { ...reply, status: 422 };
  if (reply.text.includes('"code":"internal.bug"')) return { ...reply, status: 500 };
  const refused = /"isError":true/.test(reply.text) || /"error":\{"code":-?\d+/.test(reply.text);
  return refused ? { ...reply, status: 403 } : reply;
}
