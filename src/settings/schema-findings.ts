import type { z } from "zod";
import { didYouMean, nearest } from "../kernel/nearest.ts";
import { type ConfigPath, errorAt, type Finding } from "./config-problem.ts";
import { idInWords } from "./plain-id.ts";
import { keysAt, type Schema } from "./schema-walk.ts";
import { isNearSecret } from "./secret-positions.ts";
import { valueAt } from "./value-at.ts";
import type { YamlSource } from "./yaml-source.ts";

type Issue = z.core.$ZodIssue;

/** What was written, and by which schema; without one, by that of the config. */
export type Written = Pick<YamlSource, "value" | "isWritten" | "substitutionAt"> & { readonly schema?: Schema };

const YES_OR_NO = /^(yes|no|on|off|y|n)$/i;

/** What the schema refuses, in words: what was expected, what is there, what to write. */
export function schemaFindings(issues: readonly Issue[], source: Written): Finding[] {
  const misspelt = new Set(issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? [JSON.stringify(issue.path)] : [])));
  // What a misspelt key should have said is missing too; one word about it is enough.
  const telling = issues.filter((issue) => issue.code !== "custom" || !misspelt.has(JSON.stringify(issue.path)));
  return telling.flatMap((issue) => findingsOf(issue, issue.path as ConfigPath, source));
}

function findingsOf(issue: Issue, path: ConfigPath, source: Written): Finding[] {
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownKey(path, key, source));
    case "invalid_key":
      return [badKey(path, issue.issues[0]?.message ?? "this cannot be a key here")];
    case "invalid_union":
      return unionFindings(issue, path, source);
    case "invalid_value":
      return [expected(path, listed(issue.values.map(String)), source, issue.values.map(String), "config.wrong_value")];
    case "invalid_type":
      return [expected(path, inWords(issue.expected), source, [], "config.wrong_type")];
    case "too_big":
      return [outOfBounds(path, `at most ${issue.maximum}${counted(issue.origin)}`, issue.origin, source)];
    case "too_small":
      return [
        outOfBounds(path, issue.minimum === 0 ? "more than 0" : `at least ${issue.minimum}${counted(issue.origin)}`, issue.origin, source),
      ];
    default:
      return [errorAt(path, "config.wrong_value", issue.message, sentence(issue.message))];
  }
}

function unknownKey(path: ConfigPath, key: string, { schema }: Written): Finding {
  const known = keysAt(path, schema);
  if (key === "<<") {
    const fix = "Write the keys out; an alias (*name) can stand for a whole value only.";
    return errorAt([...path, key], "config.unknown_key", "keys are not merged", fix, "key");
  }
  if (known.includes(key))
    return errorAt([...path, key], "config.unknown_key", "this key does not go with the others here", "Remove it, or them.", "key");
  const meant = nearest(key.slice(0, 100), known);
  const isBinding = path[0] === "bindings" && path.length === 2 && /^[a-z][a-z0-9_-]{1,31}$/.test(key);
  const platform = isBinding ? ` For a platform of this name, write match: { platform: ${key}, chat: "…" }.` : "";
  const fix = meant ? `Write ${meant} instead.` : `Remove it, or write one of: ${known.join(", ")}.${platform}`;
  return errorAt([...path, key], "config.unknown_key", `unknown key${didYouMean(key, known)}`, fix, "key");
}

function badKey(path: ConfigPath, message: string): Finding {
  if (path[0] !== "agents" || path.length !== 2) return errorAt(path, "config.bad_key", message, sentence(message), "key");
  const { why, fix } = idInWords(String(path[1]), message);
  return errorAt(path, "config.bad_id", why, fix, "key");
}

/** Of the ways to write a value, the one that was probably meant: its first complaints are about something inside, and are few. */
function unionFindings(issue: Extract<Issue, { code: "invalid_union" }>, path: ConfigPath, source: Written): Finding[] {
  if (issue.message !== "Invalid input") return [expected(path, issue.message.replace(/^expected /, ""), source, [], "config.wrong_type")];
  const branches = issue.errors as readonly (readonly Issue[])[];
  const about = branches.filter(
    (branch) => !branch.some((one) => one.path.length === 0 && (one.code === "invalid_type" || one.code === "invalid_value")),
  );
  const [meant] = about.toSorted((a, b) => a.length - b.length);
  if (meant) {
    if (path[2] === "mcp" && path.length === 4 && about.length > 1) return serverFindings(meant, path, source);
    return schemaFindings(
      meant.map((one) => ({ ...one, path: [...path, ...one.path] })),
      source,
    );
  }
  const all = branches.flat();
  // YAML takes a bare * for an alias.
  const values = all.flatMap((one) =>
    one.code === "invalid_value" ? one.values.map((value) => (value === "*" ? '"*"' : String(value))) : [],
  );
  const kinds = all.flatMap((one) => (one.code === "invalid_type" && one.path.length === 0 ? [inWords(one.expected)] : []));
  const wanted = [values, [...new Set(kinds)]].filter((words) => words.length > 0).map(listed);
  return [expected(path, wanted.join(", or "), source, values, values.length > 0 ? "config.wrong_value" : "config.wrong_type")];
}

/** `{}` is as near to one kind of server as to the other. */
function serverFindings(meant: readonly Issue[], path: ConfigPath, source: Written): Finding[] {
  const misspelt = meant.filter((one) => one.code === "unrecognized_keys");
  if (misspelt.length > 0) return misspelt.flatMap((one) => findingsOf(one, path, source));
  const fix = "Write command: <program> (with args), or url: <address> (with headers).";
  return [errorAt(path, "config.missing_key", "a server has a `command` or a `url`", fix)];
}

function expected(path: ConfigPath, wanted: string, source: Written, names: readonly string[], code: string): Finding {
  const found = valueAt(source.value, path);
  const key = String(path.at(-1) ?? "");
  if (found === undefined && !source.isWritten(path))
    return errorAt(path, "config.missing_key", `\`${key}\` is missing; expected ${wanted}`, `Add ${key}: <${wanted}>.`);
  const spelt = typeof found === "string" ? found : "";
  const message = `expected ${wanted}, found ${shown(path, source)}${didYouMean(spelt, names)}`;
  const nearby = nearest(spelt.slice(0, 100), names);
  return errorAt(path, code, message, nearby ? `Write ${nearby}.` : fixOf(path, found, wanted));
}

/** The same thing in the form that is wanted, where it can be told. */
function fixOf(path: ConfigPath, found: unknown, wanted: string): string {
  const isWord = (typeof found === "string" && /^[\w.:@*/-]{1,40}$/.test(found)) || typeof found === "number";
  if (found === null) return `Write ${wanted}, or remove the key.`;
  if (typeof found === "number" && /\b(id|text)\b/.test(wanted)) return `Write it in quotes: "${found}".`;
  if (wanted === "a list" && isWord && !isNearSecret(path)) return `Write ["${found}"].`;
  if (wanted === "true or false" && typeof found === "string" && YES_OR_NO.test(found)) return `Write ${/^(y|on)/i.test(found)}.`;
  if (/number$/.test(wanted) && typeof found === "string" && /^-?\d+(\.\d+)?$/.test(found)) return `Write ${found}, without quotes.`;
  if (path.at(-1) === "tools" && found === "none") return "Write [] for no tools.";
  if (wanted === "a map")
    return Array.isArray(found) ? `Write keys instead of dashes${example(path)}.` : `Write keys below it${example(path)}.`;
  return `Write ${wanted}.`;
}

function example(path: ConfigPath): string {
  if (path.length === 1 && path[0] === "agents") return ", for example main: {}";
  const known = keysAt(path);
  if (known.length > 0) return `: ${known.join(", ")}`;
  return path.at(-1) === "env" ? ", for example NAME: $" + "{NAME}" : "";
}

function outOfBounds(path: ConfigPath, wanted: string, origin: string, source: Written): Finding {
  const found = origin === "number" || origin === "int" ? `, found ${shown(path, source)}` : "";
  return errorAt(path, "config.wrong_value", `expected ${wanted}${found}`, `Write ${wanted}.`);
}

/** Values are shown short, and names instead of what they stand for: a misplaced secret must not end up in a log. */
function shown(path: ConfigPath, source: Written): string {
  const value = valueAt(source.value, path);
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  if (isNearSecret(path)) return typeof value === "string" ? "a text" : `a ${typeof value}`;
  const written = source.substitutionAt(path)?.written ?? value;
  return typeof written === "string" && written.length > 40 ? "a long text" : JSON.stringify(written);
}

function counted(origin: string): string {
  if (origin === "string") return " characters";
  return origin === "array" || origin === "set" ? " entries" : "";
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? "something else") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function sentence(text: string): string {
  const told = text.replace(/^expected /, "Write ");
  return `${told.charAt(0).toUpperCase()}${told.slice(1)}.`;
}

function inWords(expected: string): string {
  const words: Readonly<Record<string, string>> = {
    object: "a map",
    record: "a map",
    array: "a list",
    string: "a text",
    int: "a whole number",
    boolean: "true or false",
  };
  return words[expected] ?? `a ${expected}`;
}
