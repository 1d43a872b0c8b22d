import { startDaemon } from "../../src/daemon/daemon.ts";

/** A daemon that ends as kill -9 would end it, at an exact line: `crashing-daemon.ts HOME POINT`, or at the last of `POINT,POINT`, in turn. */
const [, , home, points = ""] = process.argv;
const ahead = points.split(",");
const daemon = await startDaemon({
  home,
  port: 0,
  reached: (reached) => {
    if (reached !== ahead[0]) return;
    ahead.shift();
    if (ahead.length === 0) process.kill(process.pid, "SIGKILL");
  },
});
process.stdout.write(`${JSON.stringify({ url: daemon.url })}\n`);
