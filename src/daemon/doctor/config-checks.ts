import { modelsOf } from "../../abilities/models/configured-models.ts";
import { asFailure } from "../../kernel/failure.ts";
import type { Agent } from "../../records/agents/agent.ts";
import { revisionOf } from "../../records/agents/revision.ts";
import type { Whereabouts } from "../../settings/home.ts";
import { loadSettings, type Settings } from "../../settings/load-settings.ts";
import { summaryOf } from "../agent-summary.ts";
import { type CheckedProblem, checkConfig } from "../local-config.ts";
import { blocking, broken, type Finding, ok, warning } from "./check.ts";

export interface ReadConfig {
  readonly findings: readonly Finding[];
  /** Null: it cannot be read, and there is nothing more to look at. */
  readonly settings: Settings | null;
}

/** Who can read .env is asked with the home, and can be put right there; who cannot answer, with the agents; who cannot connect, with the channels. */
const TOLD_ELSEWHERE = ["config.readable_secrets", "config.no_key", "config.unknown_model", "config.no_credential"];

/** The config as a start would read it, and the agents it makes. */
export function configChecks(where: Whereabouts): ReadConfig {
  let settings: Settings | null = null;
  try {
    settings = loadSettings(where, process.env);
  } catch (error) {
    const { message, hint } = asFailure(error);
    return { settings, findings: [blocking("config", message, hint)] };
  }
  const { exists, file, problems } = checkConfig(where, undefined);
  const told = problems.filter(({ path, code }) => quarantinedBy(settings, path) === undefined && !TOLD_ELSEWHERE.includes(code));
  const findings = [
    ...told.map((problem) => (problem.severity === "error" ? broken : warning)("config", inWords(problem), problem.fix)),
    ...(told.length === 0 ? [ok("config", exists ? `${file} has no problems` : `there is no ${file}: everything is as by default`)] : []),
    ...agentFindings(settings),
  ];
  return { settings, findings };
}

function quarantinedBy({ quarantined }: Settings, path: string): string | undefined {
  const [section, id] = path.split(".");
  return section === "agents" && id !== undefined && quarantined.has(id) ? id : undefined;
}

function inWords({ file, line, column, path, message }: CheckedProblem): string {
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;
}

function agentFindings(settings: Settings): Finding[] {
  const agents = [...revisionOf(settings, 0).agents.values()];
  const models = modelsOf(settings);
  const findings = agents.flatMap((agent): Finding[] => {
    if (agent.state === "quarantined") return [quarantine(agent, settings)];
    if (agent.state !== "active")
      return [warning(`agent.${agent.id}`, `it is ${agent.state}: ${agent.because}`, `guildhall agents resume ${agent.id}`)];
    const { problem } = summaryOf(agent, models);
    return problem === null
      ? []
      : [broken(`agent.${agent.id}`, `it cannot answer: ${problem}`, "Name a model that is there, or set its key.")];
  });
  const active = agents.filter(({ state }) => state === "active").length;
  return [ok("agents", `${active} of ${agents.length} active`), ...findings];
}

function quarantine({ id, because }: Agent, { quarantined }: Settings): Finding {
  return broken(`agent.${id}`, because ?? "its section is broken", quarantined.get(id)?.[0]?.fix ?? "Correct its section of the config.");
}
