import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { seededRandom } from "../../src/kernel/random.ts";
import type { MarkedRequest } from "../../src/store/marked-documents.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const GROUPS = 24;
const IN_A_GROUP = 60;
/** What is weighed at most. */
const WEIGHED = 200;

interface Written {
  readonly id: string;
  readonly words: readonly string[];
  readonly marks: readonly string[];
}

describe.each(PLACES)("documents with marks on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  test("the newest 200 that fit are found, wherever they are among millions of numbers", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = seededRandom(seed);
    const chance = (probability: number): boolean => random.fraction() < probability;
    const written: Written[] = [];
    for (let group = 0; group < GROUPS; group++) {
      // Documents that are gone leave their numbers behind; SQLite gives them out again.
      const gone = Math.floor(2 ** (random.fraction() * 19));
      if (place.kind === "postgres")
        await place.tamper(`select setval(s, nextval(s) + ${gone}) from pg_get_serial_sequence('marked_documents', 'doc') as s`);
      await store.transact("fill", async (tx) => {
        for (let index = 0; index < IN_A_GROUP; index++) {
          const words = [
            ["lantern", 1],
            ["orchard", 0.6],
            ["pebble", 0.3],
            ["pewter", 0.1],
            ["quill", 0.03],
            ["dawn", group < 5 ? 0.9 : 0],
            ["dusk", group >= GROUPS - 2 ? 0.9 : 0],
          ].flatMap(([word, probability]) => (chance(probability as number) ? [word as string] : []));
          const marks = [...(chance(0.5) ? ["of:ann"] : []), ...(chance(0.1) ? ["of:ben"] : []), chance(0.5) ? "kind:one" : "kind:two"];
          const document = { id: `${group}-${index}`, words, marks };
          await store.marked.add(tx, { id: document.id, text: words.join(" "), marks });
          written.push(document);
        }
      });
    }
    const found = async (request: Omit<MarkedRequest, "limit">): Promise<string[]> =>
      (await store.marked.find({ ...request, limit: 1_000 })).map(({ id }) => id).sort();
    const newest = (fits: (document: Written) => boolean): string[] =>
      written
        .filter(fits)
        .slice(-WEIGHED)
        .map(({ id }) => id)
        .sort();
    const has =
      (...words: string[]) =>
      (document: Written) =>
        words.every((word) => document.words.includes(word));
    const begun = (beginning: string) => (document: Written) => document.words.some((word) => word.startsWith(beginning));
    const requests: readonly [string, "all" | "any" | "operators", (document: Written) => boolean][] = [
      ["lantern", "all", has("lantern")],
      ["orchard pebble", "all", has("orchard", "pebble")],
      ["pewter", "all", has("pewter")],
      ["quill", "all", has("quill")],
      ["quill pewter", "any", (document) => has("quill")(document) || has("pewter")(document)],
      ["dawn", "all", has("dawn")],
      ["dusk", "all", has("dusk")],
      ["orchard dawn", "all", has("orchard", "dawn")],
      ["dawn dusk", "all", () => false],
      ['"lantern orchard"', "operators", has("lantern", "orchard")],
      ["pe*", "operators", begun("pe")],
      ["pewt*", "operators", begun("pewt")],
      ["quil*", "operators", begun("quil")],
      ["daw*", "operators", begun("daw")],
      ["orch* -peb*", "operators", (document) => begun("orch")(document) && !begun("peb")(document)],
      ["lantern -orchard", "operators", (document) => !has("orchard")(document)],
    ];
    for (const [text, match, fits] of requests) {
      const marked = (...marks: string[][]) => found({ text, match, marked: marks });
      const where = `${text}, seed ${seed}`;
      expect(await marked(), where).toEqual(newest(fits));
      expect(await marked(["of:ann"]), `${where}, of ann`).toEqual(newest((each) => fits(each) && each.marks.includes("of:ann")));
      expect(await marked(["of:ann", "of:ben"], ["kind:two"]), `${where}, of ann or ben and of kind two`).toEqual(
        newest((each) => fits(each) && each.marks.includes("kind:two") && (each.marks.includes("of:ann") || each.marks.includes("of:ben"))),
      );
      expect(await marked(["of:nobody"]), `${where}, of nobody`).toEqual([]);
    }
  });
});
