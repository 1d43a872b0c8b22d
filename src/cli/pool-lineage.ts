import type { Change, Entry, LineageItem } from "../contract/pools.ts";
import { caption, poolsFor, writer } from "./pool.ts";
import { moment, table } from "./spans.ts";
import { type GlobalOptions, harmless, print, say } from "./terminal.ts";

const SHOWN = 60;

export async function showHistory(name: string, key: string, options: GlobalOptions): Promise<number> {
  const pools = await poolsFor(options);
  const entries: Entry[] = [];
  for (let after: number | undefined; ; ) {
    const page = await pools.history(name, key, { after });
    entries.push(...page.entries);
    if (page.next === null) break;
    after = page.next;
  }
  if (options.json) print(JSON.stringify({ entries }));
  else print(table([["version", "by", "label", "written", "", "value"], ...entries.map(historyRow)]));
  return 0;
}

export async function showDifference(name: string, key: string, from: number, to: number, options: GlobalOptions): Promise<number> {
  const pools = await poolsFor(options);
  const difference = await pools.difference(name, key, from, to);
  if (options.json) print(JSON.stringify(difference));
  else if (difference.changes.length === 0) say("the two versions are equal");
  else for (const change of difference.changes) print(changeLines(change));
  if (difference.truncated) say("there are more changes than are shown");
  return 0;
}

export async function showBlame(name: string, key: string, options: GlobalOptions & { readonly at?: number }): Promise<number> {
  const pools = await poolsFor(options);
  const blame = await pools.blame(name, key, options.at);
  if (options.json) {
    print(JSON.stringify(blame));
    return 0;
  }
  print(caption(blame.entry));
  print(`\nmade from\n${itemTable(blame.derivedFrom)}`);
  const readers = blame.readBy.map((reader) => [`  ${harmless(reader.agent)}`, reader.run ?? "outside a turn", moment(reader.at)]);
  print(`\nread by\n${readers.length === 0 ? "  nobody" : table(readers)}`);
  print(`\nmade from it\n${itemTable(blame.descendants)}`);
  if (blame.hidden > 0) say(`${blame.hidden} more that you may not read`);
  if (blame.truncated) say("there are more than are shown");
  return 0;
}

export async function retractVersion(
  name: string,
  key: string,
  version: number,
  options: GlobalOptions & { readonly reason: string },
): Promise<number> {
  const pools = await poolsFor(options);
  const answer = await pools.retract(name, key, version, options.reason);
  if (options.json) {
    print(JSON.stringify(answer));
    return 0;
  }
  for (const each of answer.retracted) print(`retracted ${harmless(each.pool)} ${harmless(each.key)} version ${each.version}`);
  for (const each of answer.rerun)
    print(`to be done again: ${harmless([each.agent, each.run, each.step].filter((part) => part !== null).join(" / "))}`);
  for (const { id, steps } of answer.workflows ?? [])
    print(`to run those steps again: guildhall workflow rerun ${id} --from ${harmless(steps.join(" "))}`);
  if ((answer.workflows ?? []).length > 0) say("(with --dry-run it only tells what that would be)");
  if (answer.left > 0) say(`${answer.left} made from it are not yours to withdraw; ask an operator`);
  return 0;
}

export async function endorseVersion(
  name: string,
  key: string,
  options: GlobalOptions & { readonly at?: number; readonly reason: string },
): Promise<number> {
  const pools = await poolsFor(options);
  const entry = await pools.endorse(name, key, options.at, options.reason);
  print(options.json ? JSON.stringify(entry) : caption(entry));
  return 0;
}

function historyRow(entry: Entry): string[] {
  const state = entry.retracted ? "retracted" : entry.deleted ? "deleted" : "";
  return [String(entry.version), writer(entry), entry.label, moment(entry.at), state, entry.deleted ? "" : short(entry.value)];
}

function itemTable(items: readonly LineageItem[]): string {
  if (items.length === 0) return "  nothing";
  return table(
    items.map((item) => [
      `  ${harmless(item.pool)} ${harmless(item.key)}@${item.version}`,
      writer(item),
      item.label,
      item.retracted ? "retracted" : "",
    ]),
  );
}

function changeLines(change: Change): string {
  const lines = [harmless(change.path) || "/"];
  if ("before" in change) lines.push(`  - ${short(change.before)}`);
  if ("after" in change) lines.push(`  + ${short(change.after)}`);
  return lines.join("\n");
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return harmless(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
}
