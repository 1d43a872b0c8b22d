import type { Binding } from "../../src/contract/bindings.ts";
import { configSchema } from "../../src/contract/config.ts";
import type { Address } from "../../src/deciders/routing/address.ts";
import { Router } from "../../src/deciders/routing/router.ts";
import { missOf, rulesOf } from "../../src/deciders/routing/rule.ts";
import { SessionKeys } from "../../src/deciders/routing/session-key.ts";
import { serve } from "../child.ts";
import { openClaw } from "../peers/openclaw.ts";
import { addresses, agentNames, bindingsFor } from "./traffic.ts";

/**
 * `route`: the decision alone. `keyed`: with the key of the session, as OpenClaw's resolver answers it. `stored`: with the trace that is kept
 * with a message. `explained`: with a line for every rule. `scan`: the rules one after another, best first. `map`: one `Map.get` by the
 * chat. `openclaw`: its own resolver.
 */
export type RoutesSide = "route" | "keyed" | "stored" | "explained" | "scan" | "map" | "openclaw";

export interface RoutesTask {
  readonly side: RoutesSide;
  readonly rules: number;
  readonly routes: number;
  /** So many addresses, asked about in turn; absent: none is asked about twice. */
  readonly addresses?: number;
}

const STORED_LINES = 100;
const BATCH = 50_000;
const CHECKED = 2_000;

interface Side<Prepared> {
  prepare(address: Address): Prepared;
  /** Answers the agent, or null where it has no answer of its own. */
  decide(prepared: Prepared): string | null;
}

await serve<RoutesTask, { perSecond: number }>(async ({ side, rules, routes, addresses: few }) => {
  const bindings = bindingsFor(rules);
  const agents = agentNames();
  const router = new Router({
    agents: Object.fromEntries(agents.map((id) => [id, {}])),
    unrouted: "default",
    bindings,
    lineOf: (index) => index + 1,
  });
  const chosen = await sideOf(side, router, bindings, agents);
  if (side !== "map")
    for (const address of addresses(rules, 1_000_000_000, Math.min(CHECKED, routes))) {
      const [ours, theirs] = [router.route(address).agent, chosen.decide(chosen.prepare(address))];
      if (ours !== theirs) throw new Error(`${side} says ${theirs}, the router ${ours}: ${JSON.stringify(address)}`);
    }
  measure(chosen, rules, 0, Math.ceil(routes / 4), few);
  return { perSecond: routes / (measure(chosen, rules, routes, routes, few) / 1_000) };
});

/**
 * Addresses are made before the clock starts, a batch at a time, and asked about once unless they are to be few. Answers the milliseconds that the thread was at work:
 * who else uses the machine must not count.
 */
function measure<Prepared>(side: Side<Prepared>, rules: number, from: number, count: number, few?: number): number {
  let spent = 0;
  for (let at = from; at < from + count; at += BATCH) {
    const size = Math.min(BATCH, from + count - at);
    const made = Array.from(few === undefined ? addresses(rules, at, size) : addresses(rules, 0, few), (address) => side.prepare(address));
    const batch = Array.from({ length: size }, (_, index) => made[index % made.length] as Prepared);
    let answered = 0;
    const started = process.threadCpuUsage();
    for (const prepared of batch) if (side.decide(prepared) !== null) answered++;
    const { user, system } = process.threadCpuUsage(started);
    spent += (user + system) / 1_000;
    if (answered > batch.length) throw new Error("more answers than questions");
  }
  return spent;
}

async function sideOf(side: RoutesSide, router: Router, bindings: readonly Binding[], agents: readonly string[]): Promise<Side<unknown>> {
  const keys = new SessionKeys(configSchema.parse({}));
  const plain = (decide: (address: Address) => string | null) => sideWith((address) => address, decide);
  switch (side) {
    case "route":
      return plain((address) => router.route(address).agent);
    case "keyed":
      return plain((address) => {
        const { agent } = router.route(address);
        return agent !== null && keys.keyFor(agent, address).length > 0 ? agent : null;
      });
    case "stored":
      return plain((address) => router.explain(address, STORED_LINES).agent);
    case "explained":
      return plain((address) => router.explain(address).agent);
    case "scan": {
      const ranked = rulesOf(bindings);
      return plain((address) => ranked.find((rule) => missOf(rule, address) === null)?.binding.agent ?? "main");
    }
    case "map": {
      const byChat = new Map(bindings.flatMap(({ chat, agent }) => (chat === null ? [] : [[chat, agent]])));
      return plain((address) => byChat.get(address.chat) ?? null);
    }
    case "openclaw": {
      const { prepare, resolve } = await openClaw(bindings, agents);
      return sideWith(prepare, resolve);
    }
  }
}

/** What a side prepares is its own affair, and comes back to it alone. */
function sideWith<Prepared>(prepare: (address: Address) => Prepared, decide: (prepared: Prepared) => string | null): Side<unknown> {
  return { prepare, decide: (prepared) => decide(prepared as Prepared) };
}
