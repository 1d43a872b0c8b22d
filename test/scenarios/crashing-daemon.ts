import { startDaemon } from "../../src/daemon/daemon.ts";

/** A daemon that ends as kill -9 would end it, at an exact line: `crashing-daemon.ts HOME POINT`. */
const [, , home, point] = process.argv;
const daemon = await startDaemon({
  home,
  port: 0,
  reached: (reached) => {
    if (reached === point) process.kill(process.pid, "SIGKILL");
  },
});
process.stdout.write(`${JSON.stringify({ url: daemon.url })}\n`);
