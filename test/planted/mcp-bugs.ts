import type { PlantedBug } from "./bugs.ts";

const ROOM = "src/abilities/tools/mcp";
const HOSTILE = ["test/scenarios/mcp-hostile.test.ts"];
const PINS = ["test/contract/mcp-pins.test.ts"];

export const MCP_BUGS: readonly PlantedBug[] = [
  {
    name: "tools of an MCP server are pinned for the listing, not for the call",
    file: `${ROOM}/mcp-servers.ts`,
    from: "    await this.#refuseChanged(known, list);\n    const now = list",
    to: "    const now = list",
    tests: HOSTILE,
    filter: "by its own word",
  },
  {
    name: "a tool that was offered calls whatever has its name now",
    file: `${ROOM}/mcp-servers.ts`,
    from: "if (!now || toolHash(now) !== tool.hash)",
    to: "if (!now)",
    tests: HOSTILE,
    filter: "in the middle of a turn",
  },
  {
    name: "an MCP server gets the daemon's variables",
    file: `${ROOM}/server-place.ts`,
    from: "const env = { ...parts.environment, HOME: folder, ...own };",
    to: "const env = { ...(globalThis.process.env as Record<string, string>), ...parts.environment, HOME: folder, ...own };",
    tests: HOSTILE,
    filter: "nothing of the daemon",
  },
  {
    name: "tools whose names differ in capitals become one",
    file: `${ROOM}/tool-names.ts`,
    from: "-${sha256(tool).slice(0, HASH_LENGTH)}`;",
    to: "`;",
    tests: HOSTILE,
    filter: "differ in capitals",
  },
  {
    name: "a tool of an MCP server may bear the name of a built-in one",
    file: `${ROOM}/tool-names.ts`,
    from: "if (BUILT_IN_TOOLS.includes(meant) || Object.hasOwn(TOOL_ALIASES, meant))",
    to: "if (meant === '')",
    tests: HOSTILE,
    filter: "keeps the whole server out",
  },
  {
    name: "what an MCP server has started outlives it",
    file: `${ROOM}/child-transport.ts`,
    from: 'process.kill(process.platform === "win32" ? this.pid : -this.pid, signal);',
    to: "process.kill(this.pid, signal);",
    tests: HOSTILE,
    filter: "clings to life",
  },
  {
    name: "a turn waits for as long as an MCP server takes to start",
    file: `${ROOM}/server-link.ts`,
    from: "const patience = this.#failures > 1 ? SHORT_PATIENCE_MS : this.#parts.limits.patienceMs;",
    to: "const patience = this.#failures > 1 ? SHORT_PATIENCE_MS : this.#parts.limits.startMs;",
    tests: HOSTILE,
    filter: "hangs at its start",
  },
  {
    name: "words of an MCP server are taken for our own",
    file: `${ROOM}/mcp-servers.ts`,
    from: 'const labels: Label[] = config.trusted ? [] : ["external"];',
    to: "const labels: Label[] = config.trusted ? [] : [];",
    tests: HOSTILE,
    filter: "every form",
  },
  {
    name: "a server whose tools change all the time asks a question for each change",
    file: "src/acts/settle-tool-list.ts",
    from: "if (!isSame && pin.asked.agoMs < ASK_AGAIN_MS)",
    to: "if (!isSame && pin.asked.agoMs < 0)",
    tests: PINS,
    filter: "once a minute",
  },
  {
    name: "a new list of tools is taken without a person's word",
    file: "src/acts/settle-tool-list.ts",
    from: 'if (isSame && answer === "used") {',
    to: "if (isSame) {",
    tests: PINS,
    filter: "asked about once",
  },
];
