import type { PlantedBug } from "./bugs.ts";

const HOLD = "src/acts/hold-turn.ts";
const EDIT = "src/settings/edit-config.ts";
const held = { tests: ["test/contract/held-turns.test.ts"] };
const edits = { tests: ["src/settings/edit-config.test.ts"] };
const life = { tests: ["test/scenarios/agents.test.ts"], filter: "SQLite" };

/** Bugs in agents as tenants: their config, its revisions, their standstill. */
export const TENANT_BUGS: readonly PlantedBug[] = [
  {
    name: "a turn is parked and nobody knows for whom",
    file: HOLD,
    from: "      await addHeldTurn(tx, { workId: item.id, agent: run.agent, runId: run.id, revision });\n",
    to: "",
    ...held,
  },
  {
    name: "a node with an older config wakes what a newer one holds",
    file: "src/records/agents/held-turns.ts",
    from: "max(revision) as revision",
    to: "0 as revision",
    ...held,
  },
  {
    name: "whoever wakes late says of a running turn that it waits",
    file: "src/records/sessions/runs.ts",
    from: "set status = 'queued' where id = ${id} and status = 'waiting'`",
    to: "set status = 'queued' where id = ${id} and status in ('running', 'waiting')`",
    ...held,
  },
  {
    name: "a node trusts only the numbers of revisions that it has drawn itself",
    file: "src/daemon/tenants.ts",
    from: "isNewest ??= revisions.isNewest(settings.configHash);",
    to: "isNewest ??= Promise.resolve(false);",
    tests: ["test/scenarios/agents-at-work.test.ts"],
    filter: "by an older number",
  },
  {
    name: "a restart cuts off the stream of what it begins again",
    file: "src/turns/live-hub.ts",
    from: "      if (channel.attempt !== attempt) return;\n",
    to: "",
    tests: ["src/turns/live-hub.test.ts"],
  },
  {
    name: "half of a text takes an agent out",
    file: "src/daemon/reload.ts",
    from: ".some((id) => !quarantined.has(id))",
    to: ".some((id) => quarantined.has(id))",
    tests: ["src/daemon/reload.test.ts"],
  },
  {
    name: "a restarted turn stays its old owner's",
    file: "src/acts/restart-turns.ts",
    from: "        await store.queue.handBackIn(tx, [item]);\n",
    to: "",
    ...held,
  },
  {
    name: "a config file that is gone leaves one agent with every tool",
    file: "src/daemon/file-here.ts",
    from: "    if (isEdited) refuseEmptied(file, before);\n",
    to: "",
    tests: ["src/daemon/reload.test.ts"],
  },
  {
    name: "a file that never rests is never read",
    file: "src/settings/watch-files.ts",
    from: " && looks < RESTLESS_LOOKS",
    to: "",
    tests: ["src/settings/watch-files.test.ts"],
  },
  {
    name: "an edit overwrites what was saved meanwhile",
    file: EDIT,
    from: "    if (readIfThere(file) !== before) return undefined;\n",
    to: "",
    ...edits,
  },
  {
    name: "an edit may break the config",
    file: EDIT,
    from: "    refuseNewErrors(settings, loadSettings(where, environment, { text: after }));\n",
    to: "",
    ...edits,
  },
  {
    name: "an edit writes the whole document anew",
    file: "src/settings/yaml-edit.ts",
    from: "if (means(spliced, wanted)) return spliced;",
    to: "if (spliced === text) return spliced;",
    tests: ["src/settings/yaml-edit.test.ts"],
  },
  {
    name: "editors do not wait for each other",
    file: "src/settings/config-lock.ts",
    from: "BEGIN EXCLUSIVE",
    to: "BEGIN",
    tests: ["test/scenarios/config-edits.test.ts"],
  },
  {
    name: "the same config is a new revision at every start",
    file: "src/records/agents/config-revisions.ts",
    from: "same.hash === revision.hash && !always",
    to: "same.hash === revision.state && !always",
    tests: ["test/contract/config-revisions.test.ts"],
  },
  {
    name: "an archived agent takes messages",
    file: "src/acts/admit-message.ts",
    from: "return message.refusalBy?.(decision.agent) ?? null;",
    to: "return null;",
    ...life,
  },
  {
    name: "an archived agent's token goes on",
    file: "src/records/access/token-scope.ts",
    from: 'if (agent.state === "archived")',
    to: 'if (agent.state === "gone")',
    ...life,
  },
  {
    name: "a link stands for an agent's soul",
    file: "src/records/agents/personality.ts",
    from: " | constants.O_NOFOLLOW",
    to: "",
    ...life,
  },
];
