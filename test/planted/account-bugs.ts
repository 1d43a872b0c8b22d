import type { PlantedBug } from "./bugs.ts";

const HELD = "src/edges/channels/held-account.ts";
const LEASES = "src/store/leases.ts";
const unit = ["src/edges/channels/held-account.test.ts"];
const leases = ["test/contract/leases.test.ts"];
const holding = ["test/contract/account-holding.test.ts"];

export const ACCOUNT_BUGS: readonly PlantedBug[] = [
  {
    name: "who takes an account over does not wait for the last poll of whoever had it",
    file: HELD,
    from: "if (this.#isClean || lingersMs === 0) return 0;",
    to: "if (this.#isClean || lingersMs > 0) return 0;",
    tests: holding,
    filter: "SQLite",
  },
  {
    name: "a node that was stopped polls once more when it goes on",
    file: HELD,
    from: "if (this.#elapsed(this.#confirmed) >= this.#parts.leaseMs * SILENT) this.lose();\n",
    to: "",
    // As a process it is luck whether an answer or a timer comes first.
    tests: unit,
  },
  {
    name: "the age of an account's lease counts from when the database answered",
    file: HELD,
    from: "    this.#confirmed = asked;\n    clearTimeout",
    to: "    this.#confirmed = momentOf(this.#parts.clock);\n    clearTimeout",
    tests: unit,
  },
  {
    name: "an account's poll is as long as it ever was",
    file: HELD,
    from: "return Math.max(SECOND_MS, Math.floor((leaseMs",
    to: "return Math.max(25 * SECOND_MS, Math.floor((leaseMs",
    tests: unit,
  },
  {
    name: "a lease that ran out counts as given back",
    file: LEASES,
    from: "isClean: !known || known.expires_at < 0 };",
    to: "isClean: !known || known.expires_at !== 0 };",
    tests: leases,
    filter: "SQLite",
  },
  {
    name: "one account in use keeps all others from being renewed",
    file: LEASES,
    from: "and expires_at > now_ms() ${dialect.skipLocked}`",
    to: "and expires_at > now_ms() ${dialect.forUpdate}`",
    tests: leases,
    filter: "waits for none",
  },
  {
    name: "an account is given back while its channel goes on",
    file: "src/edges/channels/account-runner.ts",
    from: "await held.end(!this.#isDeaf);",
    to: "await held.end(true);",
    tests: holding,
    filter: "SQLite",
  },
  {
    name: "an account that was given back goes on at the platform",
    file: HELD,
    from: "return !this.#isEnded && !this",
    to: "return !this",
    tests: unit,
  },
  {
    name: "an answer that comes late makes an account ours again",
    file: HELD,
    from: "if (this.#isEnded || this.#lost",
    to: "if (this.#lost",
    tests: unit,
  },
  {
    name: "whoever waits for an account just as nobody did is forgotten",
    file: "src/edges/channels/account-leases.ts",
    from: "    this.#asking = undefined;\n",
    to: "    queueMicrotask(() => {\n      this.#asking = undefined;\n    });\n",
    tests: ["src/edges/channels/account-leases.test.ts"],
  },
  {
    name: "nobody hears that an account is free",
    file: HELD,
    from: 'this.fence, "accounts")',
    to: "this.fence)",
    tests: holding,
    filter: "gives an account back wakes",
  },
];
