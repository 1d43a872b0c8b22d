/** The same numbers for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const SYLLABLES = ["ka", "lo", "mi", "ter", "ven", "sol", "pra", "dun", "rik", "ost", "bel", "fam", "gor", "hin", "jun", "wex"];
const WORDS = 60_000;
export const AGENTS = 200;

/** The nth most frequent word. */
export function word(rank: number): string {
  let rest = rank;
  let text = "";
  do {
    text += SYLLABLES[rest % SYLLABLES.length];
    rest = Math.floor(rest / SYLLABLES.length);
  } while (rest > 0);
  return `${text}o`;
}

/** As in texts of people, few words make up most of it: the nth is there about once in n. */
export function anyWord(random: () => number, leavingOut = 0): string {
  const [least, most] = [Math.log(leavingOut + 1), Math.log(WORDS)];
  return word(Math.min(WORDS - 1, Math.floor(Math.exp(least + random() * (most - least))) - 1));
}

function words(random: () => number, count: number): string {
  return Array.from({ length: count }, () => anyWord(random)).join(" ");
}

/** In a third of all, in one of two hundred, and in one of a hundred thousand. */
export const COMMON = "quarterly";
export const UNCOMMON = "reconciliation";
export const RARE = "zeppelin";

export function goalOf(index: number, random: () => number): string {
  const marked = [
    ...(index % 3 === 0 ? [COMMON, "report"] : []),
    ...(index % 200 === 7 ? [UNCOMMON] : []),
    ...(index % 100_000 === 77 ? [RARE] : []),
  ];
  return `${words(random, 12)} ${marked.join(" ")} ${words(random, 6)}`;
}

export function resultOf(random: () => number): string {
  return words(random, 40);
}

export function agentOf(index: number): string {
  return `agent-${index % AGENTS}`;
}

/** As the house makes them: time first, in the order in which they were opened. */
export function idOf(index: number): string {
  const time = index
    .toString(32)
    .padStart(7, "0")
    .replace(/[iou]/g, (letter) => ({ i: "w", o: "x", u: "y" })[letter] as string);
  return `1m${time}${String(index * 7_919)
    .padStart(11, "0")
    .slice(-11)}`;
}
