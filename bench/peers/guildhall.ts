import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { HttpClient } from "../coordination/http-client.ts";
import type { Description, Probe, Surroundings, System } from "./system.ts";

export const POOL = "shared";
export const IDENTITIES = ["writer-0", "writer-1", "writer-2", "writer-3", "worker", "user-1", "user-12"] as const;
/** What the pools are made of; the rest are defaults. */
export const POOLS = [
  {
    name: POOL,
    readers: ["*"],
    writers: ["*"],
    keys: {
      appended: { policy: "append" },
      branches: { policy: "append" },
      outcome: { policy: "last_write" },
      report: { policy: "last_write" },
    },
  },
  { name: "user-1", writers: ["user-1"] },
  { name: "user-12", writers: ["user-12"] },
];
const LEASE_MS = 1_000;
const PATIENCE_MS = 10_000;
const LOOK_MS = 20;
const BRANCHES = ["north", "east", "south", "west"];

export const description: Description = {
  name: "Guildhall",
  version: () => JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version,
  ways: {
    "entry, compare and set": "PUT with If-Match (the first time If-None-Match: *); a 412 shows the current entry, to be tried again upon.",
    "entry, policy append": "PUT of one note to a key with the policy append, no version needed.",
    "one run, parallel steps": "A workflow with four steps side by side, whose answers go to one key with the policy append.",
    "entry, one key per note": "PUT of every note to a key of its own with If-None-Match: *.",
  },
  isolation: "A pool is the boundary, by its whole name; keys are compared as whole texts, claims element by element.",
  resumes: {
    "workflow, review by a person":
      "A step with review: human, approved through two nodes on one database at once; its turn is what must happen once.",
    "entry as the run": "The run is an entry, resumed by a compare-and-set from suspended to running, then paid.",
    "message to two nodes": "The same message id given to two daemons on one database at once; a turn answers it.",
  },
  takeOver: `Work comes as a mail with a lease of ${LEASE_MS} ms and a claim for as long; one result is written in a batch with the ack, another in a batch that names the claim and its fence, both to keys that take the last write.`,
};

interface Entry {
  readonly version: number;
  readonly value: unknown;
}

interface Letter {
  readonly id: string;
  readonly fence: number;
}

export async function open({ url, house, seat }: Surroundings): Promise<System> {
  if (!house) throw new Error("no daemon was started");
  const client = new HttpClient(house.nodes[seat % house.nodes.length] as string, 4);
  const token = (name: string): string => house.tokens[name] as string;
  const writer = token(`writer-${seat % 4}`);
  const entryPath = (pool: string, key: string): string => `/api/pools/${pool}/entries/${encodeURIComponent(key)}`;
  const get = (pool: string, key: string, who = writer) => client.send<Entry & { error?: unknown }>("GET", entryPath(pool, key), who);
  const put = (pool: string, key: string, value: unknown, headers: Readonly<Record<string, string>> = {}, who = writer) =>
    client.send<Entry>("PUT", entryPath(pool, key), who, { value }, headers);
  const onlyNew = { "if-none-match": "*" };
  const must = <Body>(answer: { status: number; body: Body }, ...statuses: number[]): Body => {
    if (!statuses.includes(answer.status)) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const setByVersion = async (key: string, change: (value: unknown) => unknown): Promise<void> => {
    const before = await get(POOL, key);
    const condition = before.status === 200 ? { "if-match": `"${before.body.version}"` } : onlyNew;
    must(await put(POOL, key, change(before.status === 200 ? before.body.value : undefined), condition), 200, 201);
  };
  /** The run is over when this answers. The same key is the same run, on whichever node it is asked for. */
  const startRun = async (workflow: object, key: string): Promise<string> =>
    must(
      await client.send<{ id: string }>("POST", "/api/workflows/runs", token("operator"), { workflow, idempotency_key: key }),
      200,
      201,
      202,
    ).id;
  const untilOver = async (id: string): Promise<string> => {
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(LOOK_MS)) {
      const run = must(await client.send<{ status: string; error: unknown }>("GET", `/api/workflows/runs/${id}`, token("operator")), 200);
      if (run.status === "completed") return run.status;
      if (run.error) throw new Error(`${id} ${run.status}: ${JSON.stringify(run)}`);
    }
    throw new Error(`${id} is not completed in time`);
  };
  const ways: Readonly<Record<string, { add(note: string): Promise<unknown>; count(): Promise<number> }>> = {
    "one run, parallel steps": {
      // One process starts the runs; what is side by side are the steps.
      add: async (note) => {
        if (!note.startsWith("0-")) return;
        const steps = BRANCHES.map((branch) => ({ id: branch, goal: `note ${note} of ${branch}`, writes: ["branches"] }));
        await untilOver(await startRun({ name: "branching", pool: POOL, steps }, `branching ${note}`));
      },
      count: async () => new Set((must(await get(POOL, "branches"), 200).value as unknown[]).map((one) => JSON.stringify(one))).size,
    },
    "entry, compare and set": {
      add: (note) => setByVersion("compared", (notes) => [...((notes as string[] | undefined) ?? []), note]),
      count: async () => new Set(must(await get(POOL, "compared"), 200).value as string[]).size,
    },
    "entry, policy append": {
      add: async (note) => must(await put(POOL, "appended", note), 200, 201),
      count: async () => new Set(must(await get(POOL, "appended"), 200).value as string[]).size,
    },
    "entry, one key per note": {
      add: async (note) => must(await put(POOL, `note ${note}`, note, onlyNew), 201),
      count: async () =>
        must(await client.send<{ entries: unknown[] }>("GET", `/api/pools/${POOL}/entries?prefix=note%20&limit=1000`, writer), 200).entries
          .length,
    },
  };

  const probeIsolation = async (): Promise<Probe[]> => {
    const [one, twelve] = [token("user-1"), token("user-12")];
    for (const [pool, who] of [
      ["user-1", one],
      ["user-12", twelve],
    ] as const)
      must(await put(pool, "note", pool, onlyNew, who), 201);
    must(await put("user-1", "a:b", "of a:b", onlyNew, one), 201);
    must(await put("user-1", "a/1/x", "of 1", onlyNew, one), 201);
    must(await put("user-1", "a/12/x", "of 12", onlyNew, one), 201);
    const listed = async (path: string, who: string) =>
      must(await client.send<{ pools: { name: string }[]; entries: { key: string }[] }>("GET", path, who), 200);
    const foreign = await get("user-12", "note", one);
    const missing = await get("nobody", "note", one);
    const alike = JSON.stringify(foreign.body).replaceAll("user-12", "nobody") === JSON.stringify(missing.body);
    const joined = await get("user-1", "a/b", one);
    await client.send("POST", "/api/claims", twelve, { resource: "repo/src/**", ttl_ms: PATIENCE_MS });
    const beside = await client.send("POST", "/api/claims", one, { resource: "repo/src2/a.ts", ttl_ms: PATIENCE_MS });
    return [
      {
        asked: "pools of user-1",
        leaked: (await listed("/api/pools", one)).pools.map(({ name }) => name).filter((name) => name === "user-12"),
      },
      {
        asked: "entry of user-12, by user-1",
        leaked: foreign.status === 404 && alike ? [] : [`${foreign.status}, told from one that is not there`],
      },
      { asked: 'key "a/b" after writing "a:b"', leaked: joined.status === 404 ? [] : [String(joined.body.value)] },
      {
        asked: "entries with the prefix a/1/",
        leaked: (await listed("/api/pools/user-1/entries?prefix=a%2F1%2F", one)).entries
          .map(({ key }) => key)
          .filter((key) => key !== "a/1/x"),
      },
      { asked: "a claim on repo/src2/a.ts beside one on repo/src/**", leaked: beside.status === 201 ? [] : ["a conflict"] },
    ];
  };

  const paying = { name: "paying", steps: [{ id: "pay", goal: "Pay it", review: "human" }] };
  const resumes: Readonly<Record<string, System["resumes"][string]>> = {
    "workflow, review by a person": {
      suspend: async (run) => void (await startRun(paying, run)),
      resume: async (run) => {
        const id = await startRun(paying, run);
        const path = `/api/workflows/runs/${id}/approve`;
        const { status } = await client.send("POST", path, token("operator"), { step: "pay", verdict: "approve" });
        await untilOver(id);
        return status === 200 ? "approved" : `refused: ${status}`;
      },
      effects: () => stepsTaken(url),
    },
    "entry as the run": {
      suspend: async (run) => void must(await put(POOL, run, { state: "suspended" }, onlyNew), 201),
      resume: async (run, by, effect) => {
        const running = await put(POOL, run, { state: "running", by }, { "if-match": '"1"' });
        if (running.status !== 200) return `refused: ${running.status}`;
        await effect(run, by);
        must(await put(POOL, run, { state: "paid", by }, { "if-match": '"2"' }), 200);
        return "completed";
      },
    },
    "message to two nodes": {
      suspend: async () => {},
      resume: async (run) => {
        const message = { id: run, platform: "bench", chat: run, peer: "p", chat_type: "dm", text: "pay" };
        const { duplicate } = must(await client.send<{ duplicate: boolean }>("POST", "/api/messages", token("channel"), message), 202);
        return duplicate ? "told that it is a duplicate" : "accepted";
      },
      effects: () => turnsCompleted(url),
    },
  };

  const receive = async (): Promise<Letter> => {
    const wanted = { max: 1, visibility_ms: LEASE_MS, wait_ms: PATIENCE_MS };
    const { mail } = must(await client.send<{ mail: Letter[] }>("POST", "/api/mail/receive", token("worker"), wanted), 200);
    return mail[0] ?? Promise.reject(new Error("no mail"));
  };
  const claim = (run: string) =>
    client.send<{ fence: number }>("POST", "/api/claims", token("worker"), {
      resource: `work/${run}`,
      ttl_ms: LEASE_MS,
      wait_ms: PATIENCE_MS,
    });
  const finish = (by: string, { id, fence }: Letter) =>
    client.send("POST", `/api/pools/${POOL}/batch`, token("worker"), {
      writes: [{ key: "outcome", value: by }],
      ack: [{ id, fence }],
    });

  const report = (by: string, run: string, fence: number) =>
    client.send("POST", `/api/pools/${POOL}/batch`, token("worker"), {
      writes: [{ key: "report", value: by }],
      claims: [{ resource: `work/${run}`, fence }],
    });

  return {
    add: async (way, writer, index) => void (await ways[way]!.add(`${writer}-${index}`)),
    count: (way) => ways[way]!.count(),
    probeIsolation,
    resumes,
    work: async (run, by, pause) => {
      must(await client.send("POST", "/api/mail", token("writer-0"), { to: "worker", type: "work", content: { run } }), 201);
      const letter = await receive();
      const { fence } = must(await claim(run), 201, 200);
      await pause();
      const renewed = await client.send("POST", "/api/claims/renew", token("worker"), { resource: `work/${run}`, fence, ttl_ms: LEASE_MS });
      const finished = await finish(by, letter);
      const reported = await report(by, run, fence);
      const refused = (status: number): string => (status < 300 ? "accepted" : `refused (${status})`);
      return `claim renewed: ${refused(renewed.status)}; result and ack: ${refused(finished.status)}; result under the claim: ${refused(reported.status)}`;
    },
    takeOver: async (run, by) => {
      const letter = await receive();
      const { fence } = must(await claim(run), 201, 200);
      must(await finish(by, letter), 200);
      must(await report(by, run, fence), 200);
      return "finished";
    },
    results: async () => ({
      "entry written with the ack": String((await get(POOL, "outcome")).body.value),
      "entry written under the claim": String((await get(POOL, "report")).body.value),
    }),
    close: async () => client.close(),
  };
}

/** A turn that ran twice would have completed twice. */
function turnsCompleted(url: string): Promise<{ run: string; times: number }[]> {
  return counted(
    url,
    `select r.id as run, count(*)::int as times from guildhall.runs as r join guildhall.ledger as l on l.subject = 'run/' || r.id || '/'
      where r.task_id is null and l.type = 'turn.completed' group by r.id`,
  );
}

/** Turns that were taken for the step behind the approval, by workflow; one that was only begun counts too. */
function stepsTaken(url: string): Promise<{ run: string; times: number }[]> {
  return counted(
    url,
    `select t.workflow_id as run, count(*)::int as times from guildhall.tasks as t join guildhall.runs as r on r.task_id = t.id
      where t.step = 'pay' and r.started_at is not null group by t.workflow_id`,
  );
}

async function counted(url: string, query: string): Promise<{ run: string; times: number }[]> {
  const database = new pg.Client(url);
  await database.connect();
  try {
    return (await database.query(query)).rows;
  } finally {
    await database.end();
  }
}
