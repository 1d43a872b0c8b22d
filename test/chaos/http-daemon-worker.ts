import { basename } from "node:path";
import { startDaemon } from "../../src/daemon/daemon.ts";
import type { DaemonPlan } from "./http-records.ts";

/** A whole daemon, which may be told to die as kill -9 would end it, at an exact line. */
const { home, port, crash } = JSON.parse(process.argv[2] as string) as DaemonPlan;
let hits = 0;
const daemon = await startDaemon({
  home,
  port,
  // Several of them are nodes of one database.
  name: basename(home),
  logLevel: "error",
  reached: (point) => {
    if (point === crash?.point && ++hits === crash.hit) process.kill(process.pid, "SIGKILL");
  },
});
process.stdout.write(`${JSON.stringify({ token: daemon.operatorToken })}\n`);
