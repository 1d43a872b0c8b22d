import { peerIn } from "../contract/a2a.ts";
import { agentId, defaultAgentOf } from "../contract/config.ts";
import { didYouMean, nearest } from "../kernel/nearest.ts";
import { type ConfigPath, errorAt, type Finding, warningAt } from "./config-problem.ts";
import { type Surroundings, sharedPathFindings } from "./shared-paths.ts";
import { listAt, mapAt, valueAt } from "./value-at.ts";

/** What a schema cannot see: whether what names something else names something that is there. On values as written, sound or not. */
export function agentFindings(value: unknown, around: Surroundings): Finding[] {
  if (valueAt(value, ["agents"]) === undefined)
    return [...noSandbox(value, []), ...unknownAgentsInBindings(value, new Set(["main"])), ...unknownPublished(value, new Set(["main"]))];
  const ids = Object.keys(mapAt(value, ["agents"]));
  const known = new Set(ids);
  return [
    ...defaultFindings(value, ids),
    ...noSandbox(value, ids),
    ...ids.flatMap((id) => ownFindings(value, id, known)),
    ...sharedPathFindings(value, ids, around),
    ...unknownAgentsInBindings(value, known),
    ...unknownPublished(value, known),
  ];
}

/** It may be what the operator wants; he should have said it knowingly. */
function noSandbox(value: unknown, ids: readonly string[]): Finding[] {
  const places: ConfigPath[] = [["sandbox"], ...ids.map((id): ConfigPath => ["agents", id, "sandbox"])];
  return places
    .flatMap((path) => [path, [...path, "kind"]])
    .filter((path) => valueAt(value, path) === "none")
    .map((path) =>
      warningAt(
        path,
        "config.no_sandbox",
        `programs${path[0] === "agents" ? ` of ${path[1]}` : ""} run with all rights of this user: they can read the home, and every agent's files and secrets in it`,
        "Write sandbox: auto, unless that is what you want.",
      ),
    );
}

/** One that answers what no binding takes: `default: true`, else `main`, else the only one. */
function defaultFindings(value: unknown, ids: readonly string[]): Finding[] {
  const agents = valueAt(value, ["agents"]);
  if (typeof agents !== "object" || Array.isArray(agents)) return [];
  if (ids.length === 0) {
    const fix = "Add main: {}, or remove the key `agents`.";
    return [errorAt(["agents"], "config.no_agents", "expected at least one agent; without the key `agents` there is one, `main`", fix)];
  }
  const flags = Object.fromEntries(ids.map((id) => [id, { default: valueAt(value, ["agents", id, "default"]) === true }]));
  const [first, ...more] = ids.filter((id) => flags[id]?.default);
  if (defaultAgentOf(flags) === undefined) {
    const message = "expected one agent with `default: true`, or one named `main`";
    return [errorAt(["agents"], "config.no_default", message, `Write default: true in one of them, for example in ${ids[0]}.`)];
  }
  const nobody = "this is the default agent, and its id is none: what no binding takes is refused";
  const refusal =
    first === undefined || agentId.safeParse(first).success
      ? []
      : [warningAt(["agents", first, "default"], "config.no_default", nobody, "Correct the id, or make another agent the default.")];
  const seconds = more.map((id) =>
    errorAt(
      ["agents", id, "default"],
      "config.second_default",
      `only one agent can be the default, and ${first} is`,
      "Remove it here or there.",
    ),
  );
  return [...refusal, ...seconds];
}

function ownFindings(value: unknown, id: string, ids: ReadonlySet<string>): Finding[] {
  const sees: ConfigPath = ["agents", id, "sees"];
  const delegates: ConfigPath = ["agents", id, "subagents", "agents"];
  return [
    ...listAt(value, sees).flatMap((name, index) => (name === "*" ? [] : unknownAgent([...sees, index], name, ids))),
    ...listAt(value, delegates).flatMap((written, index) => {
      const path = typeof written === "string" ? [...delegates, index] : [...delegates, index, "id"];
      const name = valueAt(value, path);
      const peer = typeof name === "string" ? peerIn(name) : null;
      return peer === null ? unknownAgent(path, name, ids) : unknownPeer(path, peer, Object.keys(mapAt(value, ["peers"])));
    }),
  ];
}

function unknownPublished(value: unknown, ids: ReadonlySet<string>): Finding[] {
  const published: ConfigPath = ["a2a", "agents"];
  return listAt(value, published).flatMap((name, index) => (name === "*" ? [] : unknownAgent([...published, index], name, ids)));
}

function unknownPeer(path: ConfigPath, name: string, known: readonly string[]): Finding[] {
  if (known.includes(name)) return [];
  const meant = nearest(name.slice(0, 100), known);
  const fix = meant ? `Write peer:${meant}.` : "Add it under peers, with its url.";
  return [errorAt(path, "config.unknown_peer", `there is no peer "${name.slice(0, 100)}"${didYouMean(name, known)}`, fix)];
}

function unknownAgentsInBindings(value: unknown, ids: ReadonlySet<string>): Finding[] {
  return listAt(value, ["bindings"]).flatMap((_, index) => {
    const path: ConfigPath = ["bindings", index, "agent"];
    return unknownAgent(path, valueAt(value, path), ids);
  });
}

function unknownAgent(path: ConfigPath, name: unknown, known: ReadonlySet<string>): Finding[] {
  if (typeof name !== "string" || known.has(name)) return [];
  const ids = [...known];
  const meant = nearest(name.slice(0, 100), ids);
  const fix = meant ? `Write ${meant}.` : `Add the agent under agents, or name one of: ${ids.slice(0, 20).join(", ")}.`;
  return [errorAt(path, "config.unknown_agent", `there is no agent "${name.slice(0, 100)}"${didYouMean(name, ids)}`, fix)];
}
