import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { settleToolList } from "../../src/acts/settle-tool-list.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Approvals } from "../../src/records/access/approvals.ts";
import { readPin } from "../../src/records/mcp/pins.ts";
import { type ToolList, toolListOf } from "../../src/records/mcp/tool-list.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const KEY = { agent: "main", server: "files" };
const listOf = (...names: string[]): ToolList => toolListOf(names.map((name) => ({ name, inputSchema: { type: "object" } })));
const MINUTE = 60_000;

describe.each(PLACES)("pins of MCP servers on %s", (_, newPlace) => {
  let place: StorePlace;
  let store: Store;
  let approvals: Approvals;
  beforeEach(async () => {
    place = newPlace();
    store = await place.open();
    approvals = new Approvals(store, idSource(systemClock, systemRandom));
  });
  afterEach(() => place.remove());

  const settle = (list: ToolList, key = KEY, on = store) => settleToolList({ store: on, approvals }, key, list);
  const answer = (id: string | null, verdict: "approve" | "deny") =>
    store.transact("answer", (tx) => approvals.answerIn(tx, { name: "operator", mayAnswer: true }, id ?? "", verdict), "locked");
  const asked = () => approvals.list({ state: "asked", limit: 100 });
  const told = async () => (await store.ledger.read(0, 1_000)).map(({ type }) => type).filter((type) => type.startsWith("mcp."));
  const approvalOf = (verdict: Awaited<ReturnType<typeof settle>>): string =>
    verdict.kind === "changed" ? (verdict.approval ?? "none") : "pinned";

  test("the first list is pinned, in whatever order it comes; each agent has its own", async () => {
    expect(await settle(listOf("a", "b"))).toEqual({ kind: "pinned" });
    expect(await settle(listOf("b", "a"))).toEqual({ kind: "pinned" });
    expect(await settle(listOf("c"), { ...KEY, agent: "other" })).toEqual({ kind: "pinned" });
    expect((await readPin(store.read, KEY))?.tools.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(await told()).toEqual(["mcp.pinned", "mcp.pinned"]);
  });

  test("of two nodes with two lists one is first, and a person is asked about the other", async () => {
    const other = await place.open();
    const verdicts = await Promise.all([settle(listOf("a")), settle(listOf("b"), KEY, other)]);
    expect(verdicts.map(({ kind }) => kind).sort()).toEqual(["changed", "pinned"]);
    expect(await asked()).toHaveLength(1);
  });

  test("another list is asked about once, by however many at once, and taken when a person says so", async () => {
    await settle(listOf("a"));
    const verdicts = await Promise.all(Array.from({ length: 8 }, () => settle(listOf("a", "b"))));
    expect(new Set(verdicts.map(approvalOf)).size).toBe(1);
    const [question] = await asked();
    expect(question).toMatchObject({ tool: "mcp__files", args: { added: [{ name: "b" }], removed: [], changed: [] } });
    await answer(question?.id ?? "", "approve");
    const after = await Promise.all(Array.from({ length: 8 }, () => settle(listOf("a", "b"))));
    expect(after.every(({ kind }) => kind === "pinned")).toBe(true);
    expect(approvalOf(await settle(listOf("a")))).not.toBe("pinned");
    expect(await told()).toEqual(["mcp.pinned", "mcp.changed", "mcp.pinned", "mcp.changed"]);
  });

  test("a yes is for the list that was shown, and for no other", async () => {
    await settle(listOf("a"));
    const first = approvalOf(await settle(listOf("a", "b")));
    await answer(first, "approve");
    await place.elapse(2 * MINUTE);
    const second = approvalOf(await settle(listOf("a", "evil")));
    expect(second).not.toBe(first);
    expect((await approvals.list({ limit: 10 })).find(({ id }) => id === first)?.state).toBe("void");
    expect(approvalOf(await settle(listOf("a", "b")))).toBe("none");
  });

  test("a list that changes all the time asks no more than once a minute", async () => {
    await settle(listOf("a"));
    for (let round = 0; round < 5; round++) await settle(listOf("a", `b${round}`));
    expect(await asked()).toHaveLength(1);
    await place.elapse(2 * MINUTE);
    for (let round = 0; round < 5; round++) await settle(listOf("a", `c${round}`));
    expect(await asked()).toHaveLength(1);
    expect((await told()).filter((type) => type === "mcp.changed")).toHaveLength(2);
  });

  test("a question that nobody answered is put again when it has expired; a no is not", async () => {
    await settle(listOf("a"));
    const first = approvalOf(await settle(listOf("b")));
    await place.elapse(8 * 24 * 60 * MINUTE);
    const second = approvalOf(await settle(listOf("b")));
    expect(second).not.toBe(first);
    await answer(second, "deny");
    expect(approvalOf(await settle(listOf("b")))).toBe(second);
    expect(await settle(listOf("a"))).toEqual({ kind: "pinned" });
  });
});
