import type { PlantedBug } from "./bugs.ts";

const OPENAI = { tests: ["test/provider-openai.test.ts"] };
const RESILIENT = "src/abilities/models/resilient-model.ts";
const PATIENT = { tests: ["src/abilities/models/resilient-model.test.ts"] };

/** Bugs between a turn and the providers of models. */
export const MODEL_BUGS: readonly PlantedBug[] = [
  {
    name: "an answer that breaks off is taken for a whole one",
    file: "src/abilities/models/providers/from-stream.ts",
    from: 'if (!finish || reason === undefined || isUnknown || reason.unified === "error" || reason.unified === "interrupted")',
    to: "if (!finish || reason === undefined)",
    tests: ["test/provider-wires.test.ts"],
  },
  {
    name: "what was said before a break is kept beside the next attempt",
    file: RESILIENT,
    from: '    if (said) yield { kind: "restart", because: trouble.failure.message };\n',
    to: "",
    ...PATIENT,
  },
  {
    name: "a provider that asks to wait is not waited for",
    file: RESILIENT,
    from: "const wait = trouble.waitMs === null ? backoff : trouble.waitMs + Math.round(random.fraction() * BASE_MS);",
    to: "const wait = backoff;",
    ...PATIENT,
  },
  {
    name: "waiting has no end",
    file: RESILIENT,
    from: "if (waited > patience.waitMs || time.now() + wait - began > patience.totalMs) throw trouble.failure;",
    to: "",
    ...PATIENT,
  },
  {
    name: "silence is waited out",
    file: RESILIENT,
    from: "silent && given.abort(silent)",
    to: "silent",
    ...PATIENT,
  },
  {
    name: "the breaker never opens",
    file: "src/abilities/models/breaker.ts",
    from: "const FAILURES = 5;",
    to: "const FAILURES = 5_000_000;",
    ...PATIENT,
  },
  {
    name: "everybody probes at once",
    file: "src/abilities/models/breaker.ts",
    from: "    if (this.#probing) return { admitted: false, waitMs: PROBED_MS };\n",
    to: "",
    ...PATIENT,
  },
  {
    name: "a refused request is sent again",
    file: RESILIENT,
    from: "    if (!trouble.passing) throw trouble.failure;\n",
    to: "",
    ...PATIENT,
  },
  {
    name: "a key goes along with a redirect",
    file: "src/abilities/models/providers/open-provider.ts",
    from: 'await fetch(input, { ...init, redirect: "manual" })',
    to: 'await fetch(input, { ...init, redirect: "follow" })',
    ...OPENAI,
  },
  {
    name: "the usual key is sent to whatever address has the type",
    file: "src/abilities/models/providers/provider-specs.ts",
    from: "isKeyed(type) && (!isElsewhere || name === type)",
    to: "isKeyed(type)",
    tests: ["src/abilities/models/configured-models.test.ts"],
  },
  {
    name: "one provider is sent the thoughts of another",
    file: "src/abilities/models/providers/opaque-parts.ts",
    from: 'typeof kept === "object" && kept?.from === provider && Array.isArray(kept.parts)',
    to: 'typeof kept === "object" && provider !== "" && Array.isArray(kept?.parts)',
    tests: ["test/provider-wires.test.ts"],
  },
  {
    name: "a call is made with the secret in its arguments",
    file: "src/abilities/models/redacted-models.ts",
    from: "args: redaction.text(chunk.call.args)",
    to: "args: chunk.call.args",
    tests: ["src/abilities/models/redacted-models.test.ts"],
  },
  {
    name: "the results of tools are told with their secrets",
    file: "src/abilities/models/redacted-models.ts",
    from: "({ ...result, text: redaction.text(result.text) })",
    to: "({ ...result })",
    tests: ["src/abilities/models/redacted-models.test.ts"],
  },
  {
    name: "a key is saved before anybody has asked its provider",
    file: "src/daemon/local-init.ts",
    from: 'if (verdict === "unknown")',
    to: 'if (verdict === ("never" as string))',
    tests: ["test/scenarios/init-key.test.ts"],
  },
  {
    name: "a model without a key is no problem of the config",
    file: "src/daemon/local-config.ts",
    from: ", ...modelProblems(settings)]",
    to: "]",
    tests: ["test/config-check.test.ts"],
  },
  {
    name: "models stay those of the first config",
    file: "src/abilities/models/configured-models.ts",
    from: "if (last?.settings === settings) return last.models;",
    to: "if (last) return last.models;",
    tests: ["src/abilities/models/configured-models.test.ts"],
  },
];
