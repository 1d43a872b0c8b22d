import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type CheckedKey, checkKey } from "../abilities/models/check-key.ts";
import { findLocalModel, type LocalModel } from "../abilities/models/local-servers.ts";
import { providerSpecs } from "../abilities/models/providers/provider-specs.ts";
import { agentId, defaultAgentOf } from "../contract/config.ts";
import { Failure } from "../kernel/failure.ts";
import { makeAgentHome } from "../records/agents/agent-home.ts";
import { defaultModelOf, defaultModels, wantsLocalModel } from "../records/agents/default-models.ts";
import { configJsonSchema } from "../settings/config-json-schema.ts";
import { configFileOf } from "../settings/edit-config.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";
import { workflowsFolder } from "../settings/load-workflow.ts";
import { type KeyedProvider, USUAL_KEYS } from "../settings/model-keys.ts";
import { valueText, yamlStyle } from "../settings/yaml-style.ts";
import { saveKey } from "./save-key.ts";

export interface FirstAgent {
  readonly id: string;
  /** Empty: nothing is said about it. */
  readonly personality: string;
  /** Who answers, as `<provider>/<model>`; absent: whatever there is. */
  readonly model?: string | undefined;
}

export interface InitDone {
  readonly home: string;
  readonly config: string;
  readonly agent: string;
  /** What was made; what was there already is not in it. */
  readonly made: readonly string[];
}

/** Null: it can be an agent's id. */
export function idProblem(id: string): string | null {
  const checked = agentId.safeParse(id);
  return checked.success ? null : (checked.error.issues[0]?.message ?? "this cannot be an id");
}

/** Whether there is a config to begin with. */
export function hasConfig(where: Whereabouts): boolean {
  return loadSettings({ ...where }, process.env).configFile !== null;
}

export const KEYED_PROVIDERS = Object.keys(USUAL_KEYS) as KeyedProvider[];

function isKeyedProvider(name: string): name is KeyedProvider {
  return Object.hasOwn(USUAL_KEYS, name);
}

/** Who could answer as things are: providers with a key, and a model on this machine where that would be of use. */
export async function modelsAt(
  where: Whereabouts,
): Promise<{ readonly keyed: readonly KeyedProvider[]; readonly local: LocalModel | null }> {
  const settings = loadSettings(where, process.env);
  const keyed = KEYED_PROVIDERS.filter((provider) => settings.modelKeys.keys[provider] !== undefined);
  return { keyed, local: wantsLocalModel(settings) ? await findLocalModel(settings) : null };
}

/** Who answers for an agent as things are, a model on this machine included. */
export async function whoAnswersAt(where: Whereabouts, agent: string): Promise<string> {
  const settings = loadSettings(where, process.env);
  const { agents, model } = settings.config;
  const [named = null] = [agents[agent]?.model ?? model ?? []].flat();
  const local = named === null && wantsLocalModel(settings) ? await findLocalModel(settings) : null;
  return named ?? local?.name ?? defaultModels(settings)[0];
}

/** Asks the provider, where the config says it is. */
function checkKeyAt(where: Whereabouts, provider: KeyedProvider, key: string): Promise<CheckedKey> {
  const spec = providerSpecs(loadSettings(where, process.env)).get(provider);
  return checkKey(provider, key, spec?.isElsewhere ? spec.baseUrl : undefined);
}

/** The key that is there already; null: none. */
function keyAt(where: Whereabouts, provider: KeyedProvider): string | null {
  return loadSettings(where, process.env).modelKeys.keys[provider]?.reveal() ?? null;
}

/** Checks the key with a real call, and saves it if its provider accepts it. Answers the file it is in, and the model that answers with it. */
export async function takeKeyAt(
  where: Whereabouts,
  provider: string,
  given: string | null,
): Promise<{ readonly file: string | null; readonly model: string }> {
  if (!isKeyedProvider(provider))
    throw new Failure("usage.wrong", `there is no key for "${provider}"`, { hint: `Name one of: ${KEYED_PROVIDERS.join(", ")}.` });
  const [name] = USUAL_KEYS[provider];
  const key = given ?? keyAt(where, provider);
  if (key === null) throw new Failure("usage.wrong", `there is no key for ${provider}`, { hint: `Pipe it in, or set ${name}.` });
  const { verdict, because } = await checkKeyAt(where, provider, key);
  if (verdict === "refused")
    throw new Failure("model.no_key", `the key was not saved: ${because}`, { hint: "Copy it again from the provider." });
  if (verdict === "unknown") throw new Failure("model.failed", `the key was not saved, since it could not be checked: ${because}`);
  // What is in the environment already needs no second place.
  const file = given === null ? null : saveKey(homeOf(where, process.env), name, key);
  return { file, model: defaultModelOf(provider) };
}

/** Makes what is missing for a start. What is there stays as it is, so that it can be run again at any time. */
export function initHome(where: Whereabouts, first: FirstAgent): InitDone {
  const problem = idProblem(first.id);
  if (problem !== null) throw new Failure("usage.wrong", `"${first.id}" cannot be an agent's id: ${problem}`);
  const home = homeOf(where, process.env);
  const config = configFileOf(where, process.env);
  const made: string[] = [];
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    mkdirSync(dirname(config), { recursive: true, mode: 0o700 });
    const schema = `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
    const schemaFile = join(dirname(config), "guildhall.schema.json");
    if (writeNew(schemaFile, schema, 0o644)) made.push(schemaFile);
    if (writeNew(config, configText(first), 0o600)) made.push(config);
    if (writeNew(join(home, ".env"), ENV_TEXT, 0o600)) made.push(join(home, ".env"));
    const workflows = workflowsFolder(home);
    // Whoever has a folder of workflows needs no example in it.
    if (mkdirSync(workflows, { recursive: true, mode: 0o700 }) !== undefined) {
      writeFileSync(join(workflows, "example.yaml"), WORKFLOW_TEXT, { mode: 0o600 });
      made.push(join(workflows, "example.yaml"));
    }
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    throw new Failure("home.unusable", `${path ?? home} cannot be made (${code})`, { cause: error });
  }
  const { agents } = loadSettings(where, process.env).config;
  const agent = defaultAgentOf(agents) ?? first.id;
  makeAgentHome(home, agent);
  return { home, config, agent, made };
}

function writeNew(file: string, text: string, mode: number): boolean {
  try {
    writeFileSync(file, text, { flag: "wx", mode });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

const ENV_TEXT = `# Secrets, one NAME=value in a line. guildhall.yaml uses them as \${NAME}; nobody else needs to read this file.
`;

const WORKFLOW_TEXT = `# A workflow: steps that read and write one shared memory. Run it with:
#   guildhall workflow run example --input topic="a tea shop"
name: example
description: Two look at a topic side by side, a third puts it together.
steps:
  - { id: chances, goal: "What speaks for {{input.topic}}?", writes: [chances] }
  - { id: risks, goal: "What speaks against {{input.topic}}?", writes: [risks] }
  - id: advice
    needs: [chances, risks]             # begins when both are done
    reads: [chances, risks]             # is told what they wrote, and nothing else
    writes: [advice]
    goal: Weigh both sides and give advice
    # agent: coder                      # absent: the default agent
    # review: human                     # waits for: guildhall workflow approve ID advice
outputs: [advice]
`;

function configText({ id, personality, model }: FirstAgent): string {
  const said =
    personality === "" ? "    # personality: You are helpful and brief." : `    personality: ${valueText(personality, yamlStyle(""))}`;
  const answers =
    model === undefined
      ? "# model: anthropic/claude-opus-4.6    # <provider>/<model> for every agent that names none; else one with a key, a local one, or a script"
      : `model: ${model}    # <provider>/<model> for every agent that names none`;
  return `# yaml-language-server: $schema=./guildhall.schema.json
# The config of Guildhall. A running daemon takes changes up by itself; \`guildhall config check\` finds mistakes.

${answers}

agents:
  ${id}:
    default: true                     # answers whatever is bound to nobody
${said}
    # tools: coding                   # minimal, messaging, coding, full (default), or a list of tools

# More agents: guildhall agents add coder --tools coding

# bindings:                           # which chats go to whom; see what happens with: guildhall route explain
#   - { agent: ${id}, telegram: "-100123456" }

# channels:
#   telegram: { token: \${TELEGRAM_TOKEN} }   # the token itself goes into .env
`;
}
