import type { PlantedBug } from "./bugs.ts";

const DELIVER = "src/drivers/dispatch/deliver-reply.ts";
const RECEIVE = "src/drivers/intake/receive.ts";
const RUNNER = "src/edges/channels/account-runner.ts";
const HUB = "src/edges/channels/channel-hub.ts";
const deliveries = { tests: ["test/contract/deliveries.test.ts"], filter: "SQLite" };
const receiving = { tests: ["test/contract/receiving.test.ts"], filter: "SQLite" };

export const DELIVERY_BUGS: readonly PlantedBug[] = [
  {
    name: "that a part is on its way is not recorded before it leaves",
    file: DELIVER,
    from: "await keepDelivery(store, item, reply.id, { parts: pieces, sent, intended: index, unclear });",
    to: "await keepDelivery(store, item, reply.id, { parts: pieces, sent, intended: null, unclear });",
    ...deliveries,
  },
  {
    name: "a part that may have arrived is sent again, whatever the operator wants",
    file: DELIVER,
    from: 'if (delivery === "at_most_once" || unclear > MAX_UNCLEAR) sent.push(null);',
    to: "if (unclear > MAX_UNCLEAR) sent.push(null);",
    ...deliveries,
  },
  {
    name: "a part that nobody ever answers is sent for ever",
    file: DELIVER,
    from: 'if (delivery === "at_most_once" || unclear > MAX_UNCLEAR) sent.push(null);',
    to: 'if (delivery === "at_most_once") sent.push(null);',
    ...deliveries,
  },
  {
    name: "doubts about one part count for the next",
    file: DELIVER,
    from: "      unclear = 0;\n",
    to: "",
    ...deliveries,
  },
  {
    name: "the time that a platform asks for is not waited",
    file: DELIVER,
    from: "const ms = trouble.afterMs ?? backoffOf(reply, random);",
    to: "const ms = backoffOf(reply, random);",
    ...deliveries,
  },
  {
    name: "an account that must wait goes on with its other chats",
    file: DELIVER,
    from: "if (trouble.isWhole) sender?.pause(ms);",
    to: "if (trouble.isWhole && ms < 0) sender?.pause(ms);",
    ...deliveries,
  },
  {
    name: "while an account is made anew, there is no such account",
    file: HUB,
    from: "for (const [key] of gone) if (!wanted.has(key)) this.#entries.delete(key);",
    to: "for (const [key] of gone) this.#entries.delete(key);",
    ...deliveries,
  },
  {
    name: "the cursor moves before everything is stored",
    file: RECEIVE,
    from: "await commit([taken], (tx) => alongside(tx, false)).catch(",
    to: "await commit([taken], (tx) => alongside(tx, true)).catch(",
    ...receiving,
  },
  {
    name: "a batch that is taken apart is stored by whoever does not hold the account any more",
    file: RECEIVE,
    from: "await commit([taken], (tx) => alongside(tx, false)).catch(",
    to: "await commit([taken], async () => {}).catch(",
    ...receiving,
  },
  {
    name: "a stale holder says how its account is doing",
    file: RUNNER,
    from: "        await store.leases.guard(tx, accountLease(this.#name), fence);\n        await tellState(",
    to: "        await tellState(",
    ...receiving,
  },
  {
    name: "a node that cannot renew its account goes on with it",
    file: "src/edges/channels/held-account.ts",
    from: "setTimeout(() => this.lose(), Math.max(0, ms))",
    to: "setTimeout(() => {}, Math.max(0, ms))",
    ...receiving,
  },
  {
    name: "a reply whose draft was removed is sent under the key of the draft",
    file: DELIVER,
    from: '${isGone && index === 0 ? ":anew" : ""}',
    to: "",
    ...deliveries,
  },
  {
    name: "a platform is believed to know for ever what it was sent",
    file: DELIVER,
    from: "!(channel.abilities.dedupes && reply.ageMs <= REMEMBERED_MS)",
    to: "!channel.abilities.dedupes",
    ...deliveries,
  },
  {
    name: "an account waits for the lease of a daemon that was killed",
    file: "src/daemon/daemon.ts",
    from: "    await store.leases.letGoOfAll();\n",
    to: "",
    tests: ["src/daemon/daemon.test.ts"],
  },
  {
    name: "places that are kept are nobody's",
    file: "src/drivers/dispatch/dispatcher.ts",
    from: "for (const { tenant } of this.#kept) yield tenant;",
    to: "for (const _ of this.#kept) yield null;",
    tests: ["test/dispatch.test.ts"],
  },
];
