import { startDaemon } from "../../src/daemon/daemon.ts";

/** One of several daemons on one database: `account-node.ts HOME NAME LEASE_MS`. */
const [, , home, name, leaseMs] = process.argv;
const daemon = await startDaemon({ home, name, port: 0, logLevel: "error", leaseMs: Number(leaseMs) });
process.once("SIGTERM", () => void daemon.stop().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ url: daemon.url, node: daemon.node })}\n`);
