const CONTEXT = 3;
const MAX_CHARACTERS = 4_000;

/** What changed between two texts that differ in one place, as people write it; bounded. */
export function diffOf(before: string, after: string): string {
  const old = before.split("\n");
  const now = after.split("\n");
  let same = 0;
  while (same < old.length && same < now.length && old[same] === now[same]) same++;
  let sameEnd = 0;
  while (sameEnd < old.length - same && sameEnd < now.length - same && old.at(-1 - sameEnd) === now.at(-1 - sameEnd)) sameEnd++;
  if (same === old.length && same === now.length) return "";
  const first = Math.max(0, same - CONTEXT);
  const removed = old.slice(same, old.length - sameEnd);
  const added = now.slice(same, now.length - sameEnd);
  const following = old.slice(old.length - sameEnd, old.length - sameEnd + CONTEXT);
  const preceding = old.slice(first, same);
  const counts = (lines: readonly string[]): string => `${first + 1},${preceding.length + lines.length + following.length}`;
  const lines = [
    `@@ -${counts(removed)} +${counts(added)} @@`,
    ...preceding.map((line) => ` ${line}`),
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    ...following.map((line) => ` ${line}`),
  ];
  const text = lines.join("\n");
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}\n[… ${text.length - MAX_CHARACTERS} more characters …]`;
}
