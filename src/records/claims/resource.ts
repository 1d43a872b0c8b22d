import { Failure } from "../../kernel/failure.ts";
import { encodeScope } from "../../kernel/scope.ts";

/** With its longest escaping a name must still fit as the subject of an event. */
const MAX_BYTES = 1_100;
const MAX_ELEMENTS = 40;
const ANY_ELEMENTS = "**";
const ANY_TEXT = "*";

/** A resource name, taken apart. */
export interface Resource {
  readonly name: string;
  readonly elements: readonly string[];
  readonly pattern: boolean;
  /** The elements before the first wildcard, each closed by "/". */
  readonly key: string;
  /** Keys of the resources above: only patterns stored there can overlap with this one. */
  readonly keysAbove: readonly string[];
}

export function parseResource(name: string): Resource {
  const elements = name.split("/");
  const problem = problemOf(name, elements);
  if (problem) throw new Failure("request.malformed", `resource: ${problem}`);
  const wildcard = elements.findIndex((element) => element.includes(ANY_TEXT));
  const literal = wildcard < 0 ? elements : elements.slice(0, wildcard);
  const keys = literal.map((_, index) => `${literal.slice(0, index + 1).join("/")}/`);
  return { name, elements, pattern: wildcard >= 0, key: keys.at(-1) as string, keysAbove: keys.slice(0, -1) };
}

function problemOf(name: string, elements: readonly string[]): string | undefined {
  if (name === "") return "expected a name";
  if (elements.length > MAX_ELEMENTS) return `expected at most ${MAX_ELEMENTS} elements`;
  if (Buffer.byteLength(encodeScope(elements)) > MAX_BYTES) return `expected at most ${MAX_BYTES} bytes`;
  // Everything with the same first element is decided one after another; a name without one would have to wait for everybody.
  if (elements[0]?.includes(ANY_TEXT)) return "the first element must be a plain name, without *";
  return undefined;
}

/** Whether there is a name that both stand for. Exact, patterns on both sides included. */
export function overlap(one: Resource, other: Resource): boolean {
  if (!one.pattern && !other.pattern) return one.name === other.name;
  return overlapping(one.elements, other.elements, ANY_ELEMENTS, elementsOverlap);
}

function elementsOverlap(one: string, other: string): boolean {
  if (!one.includes(ANY_TEXT) && !other.includes(ANY_TEXT)) return one === other;
  return overlapping([...one], [...other], ANY_TEXT, (a, b) => a === b);
}

type Fits<T> = (one: T, other: T) => boolean;

function overlapping<T>(one: readonly T[], other: readonly T[], gap: T, fits: Fits<T>): boolean {
  const [first, second] = [one.includes(gap), other.includes(gap)];
  if (first && second) return endsFit(one, other, gap, fits);
  if (first) return covers(one, other, gap, fits);
  if (second) return covers(other, one, gap, fits);
  return one.length === other.length && fitsAt(one, other, 0, fits);
}

/**
 * Two sequences with gaps overlap when what stands before their first gaps fits, and what stands after their last ones: everything
 * else of both can be put into the gaps, one after the other.
 */
function endsFit<T>(one: readonly T[], other: readonly T[], gap: T, fits: Fits<T>): boolean {
  const heads = Math.min(one.indexOf(gap), other.indexOf(gap));
  const tails = Math.min(one.length - 1 - one.lastIndexOf(gap), other.length - 1 - other.lastIndexOf(gap));
  for (let index = 0; index < heads; index++) if (!fits(one[index] as T, other[index] as T)) return false;
  for (let index = 1; index <= tails; index++) if (!fits(one.at(-index) as T, other.at(-index) as T)) return false;
  return true;
}

/** Head and tail have their places; what stands between two gaps goes where it first fits. */
function covers<T>(gapped: readonly T[], whole: readonly T[], gap: T, fits: Fits<T>): boolean {
  const pieces = piecesOf(gapped, gap);
  const head = pieces[0] as readonly T[];
  const tail = pieces.at(-1) as readonly T[];
  const end = whole.length - tail.length;
  if (head.length > end || !fitsAt(head, whole, 0, fits) || !fitsAt(tail, whole, end, fits)) return false;
  let from = head.length;
  for (const piece of pieces.slice(1, -1)) {
    while (from + piece.length <= end && !fitsAt(piece, whole, from, fits)) from++;
    if (from + piece.length > end) return false;
    from += piece.length;
  }
  return true;
}

function piecesOf<T>(gapped: readonly T[], gap: T): T[][] {
  const pieces: T[][] = [[]];
  for (const item of gapped) {
    if (item === gap) pieces.push([]);
    else pieces.at(-1)?.push(item);
  }
  return pieces;
}

function fitsAt<T>(piece: readonly T[], whole: readonly T[], at: number, fits: Fits<T>): boolean {
  return piece.every((item, index) => fits(item, whole[at + index] as T));
}
