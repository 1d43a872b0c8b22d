import type { PlantedBug } from "./bugs.ts";

const nodes = (filter: string) => ({ tests: ["test/scenarios/config-nodes.test.ts"], filter });

/** Bugs in how nodes share one config. */
export const CONFIG_NODE_BUGS: readonly PlantedBug[] = [
  {
    name: "a node that was away brings its old config back",
    file: "src/daemon/first-revision.ts",
    from: "(isNone || older !== undefined)",
    to: "isNone",
    ...nodes("comes back onto it"),
  },
  {
    name: "what another node has applied meanwhile is undone by an edit",
    file: "src/records/agents/config-revisions.ts",
    from: "if (after !== undefined && ",
    to: "if (after === -1 && ",
    tests: ["test/contract/config-revisions.test.ts"],
    filter: "SQLite",
  },
  {
    name: "a config with a secret taken out of it is given to other nodes",
    file: "src/daemon/store-revision.ts",
    from: "isWhole: text === settings.configText,",
    to: "isWhole: text !== undefined,",
    ...nodes("with a secret in it"),
  },
  {
    name: "a name that is not set on one node takes an agent out there",
    file: "src/daemon/stored-settings.ts",
    from: "(quarantined.includes(id) ? [] : problems)",
    to: "(quarantined.includes(id) ? problems : [])",
    ...nodes("whose names are not set"),
  },
  {
    name: "a config that could not be used on a node is never tried again",
    file: "src/daemon/reload.ts",
    from: " && this.#blocked.looks === looks) return;",
    to: ") return;",
    ...nodes("whose names are not set"),
  },
  {
    name: "a file that follows too late takes back what was changed since",
    file: "src/daemon/file-here.ts",
    from: "number !== undefined && number > before ? number : undefined",
    to: "number === undefined && number > before ? number : undefined",
    tests: ["src/daemon/file-here.test.ts"],
  },
  {
    name: "an edit through an old file gives a node the address of another",
    file: "src/settings/edit-config.ts",
    from: 'editYaml(base.text, editsToKeepOwn(base.text, before ?? "", file))',
    to: "editYaml(base.text, [])",
    ...nodes("paused through whichever"),
  },
];
