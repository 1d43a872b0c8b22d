import type { PlantedBug } from "./bugs.ts";

const onSqlite = { tests: ["test/security/secrets.test.ts"], filter: "SQLite" };

/** Bugs in the way from files to settings, and in what keeps secrets out of everything else. */
export const SETTINGS_BUGS: readonly PlantedBug[] = [
  {
    name: "a broken section takes its agent out of the config",
    file: "src/settings/validate-config.ts",
    from: "    if (!broken.has(id)) return [[id, section]];",
    to: "    if (broken.has(id)) return [];\n    if (true as boolean) return [[id, section]];",
    tests: ["src/settings/quarantine.test.ts"],
  },
  {
    name: "an agent that is broken is no longer the default",
    file: "src/settings/validate-config.ts",
    from: 'valueAt(section, ["default"]) === true && !twice.has(id) ? { default: true } : {}',
    to: "{}",
    tests: ["src/settings/quarantine.test.ts"],
  },
  {
    name: "an id of many digits loses some",
    file: "src/settings/yaml-source.ts",
    from: "  if (String(value) === source) return false;",
    to: "  return false;",
    tests: ["src/settings/load-settings.test.ts"],
  },
  {
    name: "secrets in what is sent are stored",
    file: "src/edges/api/serve.ts",
    from: "value: parts.redaction.value(readJson(body.bytes))",
    to: "value: readJson(body.bytes)",
    ...onSqlite,
  },
  {
    name: "secrets in the path are stored",
    file: "src/edges/api/serve.ts",
    from: "redaction.value(context.req.param() as Readonly<Record<string, string>>)",
    to: "context.req.param() as Readonly<Record<string, string>>",
    ...onSqlite,
  },
  {
    name: "errors quote secrets",
    file: "src/edges/api/error-response.ts",
    from: "redaction.value(body)",
    to: "body",
    ...onSqlite,
  },
  {
    name: "the secrets of a broken agent are nobody's",
    file: "src/settings/secrets.ts",
    from: "  if (substitution) return [...substitution.names];",
    to: '  if (path[1] === "broken") return [];\n  if (substitution) return [...substitution.names];',
    ...onSqlite,
  },
  {
    name: "a model is asked with secrets",
    file: "src/abilities/models/redacted-models.ts",
    from: "model.stream(redaction.value(request), signal)",
    to: "model.stream(request, signal)",
    tests: ["src/abilities/models/redacted-models.test.ts"],
  },
  {
    name: "a key of the config is read by nobody",
    file: "src/deciders/routing/session-key.ts",
    from: "own?.group_scope ?? config.group_scope ?? DEFAULT_SCOPES.groupScope",
    to: "own?.group_scope ?? DEFAULT_SCOPES.groupScope",
    tests: ["test/scenarios/config-readers.test.ts"],
  },
];
