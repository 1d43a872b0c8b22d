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
  const problem = problemOf(name, name.split("/"));
  if (problem) throw new Failure("request.malformed", `resource: ${problem}`);
  return takenApart(name);
}

/** Also of a name that could not be claimed. */
export function takenApart(name: string): Resource {
  const elements = name.split("/");
  const wildcard = elements.findIndex((element) => element.includes(ANY_TEXT));
  const literal = wildcard < 0 ? elements : elements.slice(0, wildcard);
  const keys = literal.map((_, index) => `${literal.slice(0, index + 1).join("/")}/`);
  return { name, elements, pattern: wildcard >= 0, key: keys.at(-1) as string, keysAbove: keys.slice(0, -1) };
}

function problemOf(name: string, elements: readonly string[]): string | undefined {
  if (name === "") return "expected a name";
  if (elements.length > MAX_ELEMENTS) return `expected at most ${MAX_ELEMENTS} elements`;
  if (Buffer.byteLength(encodeScope(elements)) > MAX_BYTES) return `expected at most ${MAX_BYTES} bytes`;
  // What is decided about a resource is decided under the locks of its first element; without one it would need everybody's.
  if (elements[0]?.includes(ANY_TEXT)) return "the first element must be a plain name, without *";
  return undefined;
}

/** Whether there is a name that both stand for. Exact, patterns on both sides included. */
export function overlap(one: Resource, other: Pick<Resource, "name" | "elements" | "pattern">): boolean {
  if (!one.pattern && !other.pattern) return one.name === other.name;
  return overlapping(one.elements, other.elements, ANY_ELEMENTS, elementsOverlap);
}

/** The same for a name that is known to be well-formed, and of which there may be thousands. */
export function overlaps(one: Resource, name: string): boolean {
  return overlap(one, { name, elements: name.split("/"), pattern: name.includes(ANY_TEXT) });
}

function elementsOverlap(one: string, other: string): boolean {
  if (!one.includes(ANY_TEXT) && !other.includes(ANY_TEXT)) return one === other;
  return overlapping(one, other, ANY_TEXT, isSame);
}

function isSame(one: string, other: string): boolean {
  return one === other;
}

/** The elements of a name, or the characters of an element. Halves of surrogate pairs only ever fit together with their other halves. */
interface Sequence {
  readonly length: number;
  readonly [index: number]: string;
  includes(item: string): boolean;
  indexOf(item: string, from?: number): number;
  lastIndexOf(item: string): number;
}

type Fits = (one: string, other: string) => boolean;

function overlapping(one: Sequence, other: Sequence, gap: string, fits: Fits): boolean {
  const [first, second] = [one.includes(gap), other.includes(gap)];
  if (first && second) return endsFit(one, other, gap, fits);
  if (first) return covers(one, other, gap, fits);
  if (second) return covers(other, one, gap, fits);
  return one.length === other.length && fitsAt(one, 0, one.length, other, 0, fits);
}

/**
 * Two sequences with gaps overlap when what stands before their first gaps fits, and what stands after their last ones: everything
 * else of both can be put into the gaps, one after the other.
 */
function endsFit(one: Sequence, other: Sequence, gap: string, fits: Fits): boolean {
  const head = Math.min(one.indexOf(gap), other.indexOf(gap));
  const tail = Math.min(one.length - 1 - one.lastIndexOf(gap), other.length - 1 - other.lastIndexOf(gap));
  return fitsAt(one, 0, head, other, 0, fits) && fitsAt(one, one.length - tail, one.length, other, other.length - tail, fits);
}

/** Head and tail have their places; what stands between two gaps goes where it first fits. */
function covers(gapped: Sequence, whole: Sequence, gap: string, fits: Fits): boolean {
  const [first, last] = [gapped.indexOf(gap), gapped.lastIndexOf(gap)];
  const end = whole.length - (gapped.length - 1 - last);
  if (first > end || !fitsAt(gapped, 0, first, whole, 0, fits) || !fitsAt(gapped, last + 1, gapped.length, whole, end, fits)) return false;
  let place = first;
  for (let from = first + 1; from < last; ) {
    const to = gapped.indexOf(gap, from);
    while (place + to - from <= end && !fitsAt(gapped, from, to, whole, place, fits)) place++;
    place += to - from;
    if (place > end) return false;
    from = to + 1;
  }
  return true;
}

/** Whether `piece[from…to]` fits into the other from `at` on. */
function fitsAt(piece: Sequence, from: number, to: number, whole: Sequence, at: number, fits: Fits): boolean {
  for (let index = from; index < to; index++) if (!fits(piece[index] as string, whole[at + index - from] as string)) return false;
  return true;
}
