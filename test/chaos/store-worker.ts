import { closeSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { type Random, seededRandom } from "../../src/kernel/random.ts";
import { openStore, type Store } from "../../src/store/store.ts";

/** What a victim does until it is killed. Everything it was told to be durable it tells the outside at once, on its standard output. */
export interface WorkerPlan {
  readonly location: string;
  readonly name: string;
  readonly seed: number;
  /** How many have worked on this database before. */
  readonly life: number;
  readonly ttlMs: number;
  /** Kill this process at the n-th time this point is reached. */
  readonly crash?: { readonly point: CrashPoint; readonly hit: number };
  /** `work`: until killed. `drain`: until no work is left. `open`: no more than that. */
  readonly mode: "work" | "drain" | "open";
  /** Take up all file handles for a while. */
  readonly exhaustHandles?: boolean;
}

export interface Acknowledgement {
  readonly kind: "tried" | "wrote" | "did" | "answered" | "counted" | "leased" | "stored" | "refused" | "ready";
  readonly op: string;
  readonly value?: unknown;
}

const CLIENTS = 12;
const KEYS_PER_LIFE = 100;

function tell(acknowledgement: Acknowledgement): void {
  writeSync(1, `${JSON.stringify(acknowledgement)}\n`);
}

/** Refused with a typed error: nothing is owed for it. Anything untyped is a defect, and ends the run. */
function refused(op: string, error: unknown): void {
  const code = (error as { code?: string }).code ?? "";
  if (!/^(store|fence)\./.test(code)) {
    writeSync(2, `untyped error in ${op}: ${(error as Error).stack}\n`);
    process.exit(3);
  }
  tell({ kind: "refused", op, value: code });
}

async function client(store: Store, plan: WorkerPlan, index: number): Promise<void> {
  const random = seededRandom(plan.seed + index);
  for (let count = 0; ; count++) {
    const op = `${plan.name}.${index}.${count}`;
    try {
      await step(store, plan, random, op, index);
    } catch (error) {
      refused(op, error);
      await sleep(5);
    }
  }
}

async function step(store: Store, plan: WorkerPlan, random: Random, op: string, index: number): Promise<void> {
  const choice = random.fraction();
  if (choice < 0.45) {
    const lane = index % 3 === 0 ? null : [`lane-${plan.name}`, `${index}`];
    const seq = await store.transact("write", async (tx) => {
      await tx.run`insert into chaos_rows (op) values (${op})`;
      const [event] = await store.ledger.append(tx, { type: "message.admitted", actor: plan.name, subject: ["chaos", op] });
      await store.queue.enqueue(tx, {
        kind: "job",
        payload: { op, lane: lane?.join("/") ?? null, order: seqOf(op) },
        maxAttempts: 1_000,
        ...(lane ? { lane } : {}),
      });
      return event as number;
    });
    tell({ kind: "wrote", op, value: seq });
  } else if (choice < 0.6) {
    // Keys of this life, and of the one before, whose answers may have been lost with it.
    await idempotent(store, `key-${Math.floor((plan.life - 1 + random.fraction() * 2) * KEYS_PER_LIFE)}`);
  } else if (choice < 0.75) {
    tell({ kind: "tried", op });
    await store.transact("count", async (tx) => {
      const row = await tx.get<{ value: number }>`select value from chaos_counter where name = 'sum'`;
      await tx.run`update chaos_counter set value = ${(row?.value ?? 0) + 1} where name = 'sum'`;
    });
    tell({ kind: "counted", op });
  } else if (choice < 0.85) {
    const name = `lease-${index}`;
    const lease = await store.leases.acquire([name], plan.name, plan.ttlMs);
    if (!lease.held) return;
    tell({ kind: "leased", op: name, value: { by: plan.name, fence: lease.fence } });
    await store.leases.release([name], lease.fence);
  } else if (choice < 0.9) {
    const bytes = Buffer.from(op.repeat(50));
    const hash = await store.transact("blob", (tx) => store.blobs.put(tx, ["chaos", op], bytes));
    tell({ kind: "stored", op, value: hash });
  } else if (choice < 0.93) await store.sealer.seal(plan.name);
  else await sleep(random.fraction() * 3);
}

const seqOf = (op: string): number => Number(op.split(".").at(-1));

async function idempotent(store: Store, key: string): Promise<void> {
  const request = { scope: ["chaos"], key, request: `body of ${key}` };
  const begun = await store.idempotency.begin(request, 200, 3_600_000);
  if (begun.state === "replay") tell({ kind: "answered", op: key, value: begun.result });
  if (begun.state !== "started") return;
  await store.transact("effect", async (tx) => {
    await tx.run`insert into chaos_effects (op, fence) values (${key}, ${begun.fence})`;
    await store.idempotency.finish(tx, request, begun.fence, begun.fence);
  });
  tell({ kind: "answered", op: key, value: begun.fence });
}

/** Claims jobs and does each exactly once: its effect and its settling are one transaction. */
async function consumer(store: Store, plan: WorkerPlan): Promise<void> {
  while (true) {
    try {
      await store.queue.reap();
      const seen = store.queue.version();
      const claims = await store.queue.claim(plan.name, 8, plan.ttlMs);
      await Promise.all(
        claims.map(async (claim) => {
          const { op, lane, order } = claim.payload as { op: string; lane: string | null; order: number };
          try {
            await store.transact("do", async (tx) => {
              await tx.run`insert into chaos_effects (op, fence, lane, lane_order) values (${op}, ${claim.fence}, ${lane}, ${order})`;
              await store.queue.settle(tx, claim);
            });
            tell({ kind: "did", op });
          } catch (error) {
            refused(op, error);
          }
        }),
      );
      if (claims.length > 0) continue;
      if (plan.mode === "drain") {
        const counts = await store.queue.counts();
        if (Object.keys(counts).length === 0) return;
      }
      await store.queue.wait(seen, AbortSignal.timeout(50));
    } catch (error) {
      refused("consume", error);
      await sleep(20);
    }
  }
}

/** Opens files until the system has none left, for a while, again and again. */
async function exhaust(): Promise<void> {
  while (true) {
    const handles: number[] = [];
    try {
      while (true) handles.push(openSync("/dev/null", "r"));
    } catch {
      await sleep(60);
    }
    for (const handle of handles) closeSync(handle);
    await sleep(60);
  }
}

const plan = JSON.parse(process.argv[2] as string) as WorkerPlan;
let hits = 0;
const store = await openStore(plan.location, {
  reached: (point) => {
    if (point === plan.crash?.point && ++hits === plan.crash.hit) process.kill(process.pid, "SIGKILL");
  },
});
tell({ kind: "ready", op: plan.name });
if (plan.exhaustHandles) void exhaust();
if (plan.mode !== "work") {
  if (plan.mode === "drain") {
    await consumer(store, plan);
    await store.sealer.seal(plan.name);
  }
  await store.close();
  process.exit(0);
}
await Promise.all([
  consumer(store, plan),
  consumer(store, plan),
  ...Array.from({ length: CLIENTS }, (_, index) => client(store, plan, index)),
]);
