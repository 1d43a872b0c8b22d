import type { PlantedBug } from "./bugs.ts";

const MAY_CALL = "src/deciders/policy/may-call.ts";
const POLICY = "src/deciders/policy/policy.ts";
const LAYERS = "src/deciders/policy/agent-layers.ts";
const unit = { tests: ["src/deciders/policy"] };
const properties = { tests: ["test/policy-properties.test.ts"] };

/** Bugs in who may call which tool. */
export const POLICY_BUGS: readonly PlantedBug[] = [
  {
    name: "a run keeps the rights it began with",
    file: MAY_CALL,
    from: "for (const layer of now) if (!grant.layers.includes(layer)) this.#ask(layer, tool, false);",
    to: "for (const layer of now) if (grant.layers.length === 0) this.#ask(layer, tool, false);",
    ...unit,
  },
  {
    name: "a child has its own rights, whatever its parent's are",
    file: "src/deciders/policy/grant.ts",
    from: "layers: [...grant.layers, ...layers] };",
    to: "layers: [...grant.layers, ...layers.slice(layers.length)] };",
    ...properties,
  },
  {
    name: "somebody without rights gives them to a delegate",
    file: POLICY,
    from: "if (rights === null || !holdsOwnRules(caller)) return NO_RIGHTS;",
    to: "if (rights === null) return NO_RIGHTS;",
    ...unit,
  },
  {
    name: "an agent that is not there gives rights on",
    file: POLICY,
    from: "if (!holdsOwnRules(own)) return own;",
    to: "if (own.layers.length === 0) return own;",
    ...unit,
  },
  {
    name: "a delegate has servers that its caller lacks",
    file: MAY_CALL,
    from: "this.#refuse(stateRefusal(agent, current) ?? serverRefusal(agent, grant.agent, tool, current));",
    to: "this.#refuse(stateRefusal(agent, current) ?? (agent === grant.agent ? serverRefusal(agent, grant.agent, tool, current) : null));",
    ...properties,
  },
  {
    name: "a tool of one agent's server is every agent's",
    file: POLICY,
    from: "if (server === null) return this.#tools.has(tool);",
    to: "if (server === null || this.#tools.has(tool)) return this.#tools.has(tool);",
    ...unit,
  },
  {
    name: "own rights outlive the words that gave them",
    file: MAY_CALL,
    from: 'return current.rightsOn(from, to) === "own";',
    to: 'return current.rightsOn(from, to) === "own" || from !== to;',
    ...properties,
  },
  {
    name: "an agent whose section is broken may call everything",
    file: LAYERS,
    from: "|| source.quarantined.has(agent)) return",
    to: "|| agent === null) return",
    tests: ["src/deciders/policy/can.test.ts", "src/deciders/policy/grant.test.ts"],
  },
  {
    name: "an agent's own rules replace the global deny too",
    file: LAYERS,
    from: "if (!own || !global || global.deny.length === 0)",
    to: "if (own || !global || global.deny.length === 0)",
    ...unit,
  },
  {
    name: "names of tools are trimmed and folded",
    file: "src/deciders/policy/tool-name.ts",
    from: 'if (typeof called !== "string" || !isToolName(called)) return null;',
    to: 'if (typeof called !== "string" || !isToolName((called = called.trim().toLowerCase()) as string)) return null;',
    ...unit,
  },
  {
    name: "an ask asks for what is not allowed",
    file: "src/deciders/policy/compiled-layer.ts",
    from: "if (!inProfile && added < 0) return NOT_IN_PROFILE;",
    to: "if (!inProfile && added < 0 && !this.#ask.has(tool)) return NOT_IN_PROFILE;",
    ...properties,
  },
  {
    name: "a refusal names only one of several things to change",
    file: "src/deciders/policy/finding-in-words.ts",
    from: "if (lacks.allow) {",
    to: "if (lacks.allow && changes.length === 0) {",
    tests: ["test/policy-fixes.test.ts"],
  },
  {
    name: "half a stored grant is half a grant",
    file: "src/deciders/policy/grant.ts",
    from: "result.success && holdsOwnRules(result.data) ? result.data : NO_RIGHTS;",
    to: "result.success ? result.data : (stored as Grant);",
    ...unit,
  },
];
