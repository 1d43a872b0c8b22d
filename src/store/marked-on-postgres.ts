import type { Reads } from "./engine.ts";
import { type SearchNode, toTsquery } from "./search-query.ts";
import { list } from "./sql.ts";

export interface FoundRow {
  readonly doc: number;
  readonly id: string;
  readonly at: number;
  readonly score: number;
}

/**
 * Documents are numbered as they come. The index knows of each in which block of numbers it is, of blocks of four sizes (migration 028): a range
 * is asked for by few of them.
 */
const BLOCKS = [2 ** 11, 2 ** 14, 2 ** 17, 2 ** 20];
/** Among so many of the newest it is looked first. */
const FIRST = 2 ** 11;
const WIDEST_STEP = 8;
const LEAST_STEP = 1.5;
/** Of so large a share there is no use in leaving the rest out. */
const NEARLY_ALL = 0.8;
/** So many blocks are asked for at least where there are smaller ones: the range is then not much wider than it was meant to be. */
const LEAST_BLOCKS = 4;
/** Where the beginning of a word is looked for: among so many one by one, and with marks among so many first. */
const ONE_BY_ONE = 2 ** 13;
const FIRST_OF_MARKED_BEGINNINGS = 2 ** 17;

/** The best of the newest `weighed` that fit, `words` being what they are weighed by. */
export async function onPostgres(reads: Reads, node: SearchNode, words: SearchNode, weighed: number, limit: number): Promise<FoundRow[]> {
  const docs = await newest(reads, node, node !== words, weighed);
  if (docs.length === 0) return [];
  return reads.all<FoundRow>`select doc, id, at, ts_rank_cd(terms, cast(${toTsquery(words)} as tsquery), 1) as score from marked_documents
    where doc in ${list(docs)} order by score desc, doc desc limit ${limit}`;
}

/**
 * Looks among the newest, and among more of them until enough are found: however many there are, not many more are looked at than are wanted.
 * Of a beginning of a word the index collects all that have it, whatever else is asked for: a quarter of a second among a million. One that many
 * have is found sooner one by one.
 */
async function newest(reads: Reads, node: SearchNode, isMarked: boolean, wanted: number): Promise<number[]> {
  const query = toTsquery(node);
  const isBegun = hasPrefix(node);
  const last = (await reads.get<{ last: number | null }>`select max(doc) as last from marked_documents`)?.last ?? 0;
  for (let among = isBegun && isMarked ? FIRST_OF_MARKED_BEGINNINGS : FIRST; among < last * NEARLY_ALL; ) {
    const found = await (isBegun && among <= ONE_BY_ONE
      ? oneByOne(reads, query, among, wanted)
      : byBlocks(reads, query, last, among, wanted));
    if (found.length === wanted) return found.map(({ doc }) => doc);
    among = Math.ceil(among * stepAfter(found.length, wanted));
  }
  // `offset 0` keeps it from going through all of them, newest first, until it has found enough.
  const all = await reads.all<Doc>`select doc from
    (select doc from marked_documents where terms @@ cast(${query} as tsquery) offset 0) as fitting order by doc desc limit ${wanted}`;
  return all.map(({ doc }) => doc);
}

/** How much wider it must be for enough to be there, if they are spread evenly; the fewer were found, the less is known of that. */
function stepAfter(found: number, wanted: number): number {
  if (found === 0) return WIDEST_STEP;
  return Math.min(WIDEST_STEP, Math.max(LEAST_STEP, (wanted / found) * (1 + 2 / Math.sqrt(found))));
}

interface Doc {
  readonly doc: number;
}

function oneByOne(reads: Reads, query: string, among: number, wanted: number): Promise<Doc[]> {
  return reads.all<Doc>`select doc from
    (select doc, terms from (select doc, terms from marked_documents order by doc desc limit ${among}) as last order by doc desc offset 0) as seen
    where terms @@ cast(${query} as tsquery) order by doc desc limit ${wanted}`;
}

function byBlocks(reads: Reads, query: string, last: number, among: number, wanted: number): Promise<Doc[]> {
  const level = BLOCKS.findLastIndex((size, index) => index === 0 || size * LEAST_BLOCKS <= among);
  const [oldest, youngest] = [last - among, last].map((doc) => Math.floor(doc / (BLOCKS[level] as number))) as [number, number];
  const keys = Array.from({ length: youngest - oldest + 1 }, (_, index) => (oldest + index) * BLOCKS.length + level);
  return reads.all<Doc>`select doc from
    (select doc from marked_documents where terms @@ cast(${query} as tsquery)
      and array[(doc >> 11) * 4, (doc >> 14) * 4 + 1, (doc >> 17) * 4 + 2, (doc >> 20) * 4 + 3] && cast(${`{${keys.join(",")}}`} as bigint[]) offset 0) as fitting
    order by doc desc limit ${wanted}`;
}

function hasPrefix(node: SearchNode): boolean {
  switch (node.is) {
    case "phrase":
      return false;
    case "prefix":
      return true;
    case "without":
      return hasPrefix(node.wanted) || hasPrefix(node.unwanted);
    default:
      return node.parts.some(hasPrefix);
  }
}
