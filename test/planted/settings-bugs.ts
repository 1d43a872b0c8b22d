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
    from: "[[id, isDefault ? { default: true } : {}]]",
    to: "[[id, {}]]",
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
    from: "  const substitution = source.substitutionAt(path);\n",
    to: '  if (path[1] === "broken") return [];\n  const substitution = source.substitutionAt(path);\n',
    ...onSqlite,
  },
  {
    name: "a key that stands twice in one agent's section refuses everybody",
    file: "src/settings/yaml-source.ts",
    from: "      if (isRepeated) {\n        const first",
    to: '      if (isRepeated) throw refuse("config.malformed", "twice", "");\n      if (isRepeated) {\n        const first',
    tests: ["src/settings/quarantine.test.ts"],
  },
  {
    name: "a secret over several lines is stored as it is written in the file",
    file: "src/settings/secrets.ts",
    from: 'spelling.includes(String(value)) ? "" : spelling',
    to: '""',
    tests: ["src/settings/secrets.test.ts"],
  },
  {
    name: "of two secrets that overlap, the rest of the second is said",
    file: "src/kernel/secret-finder.ts",
    from: "      hidden = Math.max(hidden, at + length);\n",
    to: "      if (at < hidden) continue;\n      hidden = at + length;\n",
    tests: ["src/kernel/redact.test.ts"],
  },
  {
    name: "a line below env of a file that is no YAML is shown",
    file: "src/daemon/config-excerpt.ts",
    from: "  if (!wasRead && isBelowSecrets(lines, line - 1)) return null;\n",
    to: "",
    tests: ["test/config-check.test.ts"],
  },
  {
    name: "main answers in place of a default agent whose id is none",
    file: "src/settings/validate-config.ts",
    from: "    isDefaultLeftOut ||= isDefault;\n",
    to: "",
    tests: ["src/settings/quarantine.test.ts"],
  },
  {
    name: "a model is asked with secrets",
    file: "src/abilities/models/redacted-models.ts",
    from: "model.stream(redactedRequest(request, redaction, clean), signal)",
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
