/**
 * Runs inside a sandbox without a network: what connects to 127.0.0.1:<port> there is carried to a socket, behind which the guard listens; then
 * starts the program it was given, and ends as that ends. `forward-worker <socket> <port> <program> [arguments…]`
 */
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";

const [socket = "", port = "", program = "", ...args] = process.argv.slice(2);

const server = createServer({ allowHalfOpen: true }, (from) => {
  const to = connect({ path: socket, allowHalfOpen: true });
  from.pipe(to).pipe(from);
  const end = (): void => {
    from.destroy();
    to.destroy();
  };
  from.on("error", end);
  to.on("error", end);
});

server.listen(Number(port), "127.0.0.1", () => {
  const child = spawn(program, args, { stdio: "inherit" });
  // Meant for the program, which has the time to end; without us everything would end at once.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
  child.on("error", (error) => {
    console.error(error.message);
    process.exit(127);
  });
  child.on("exit", (code, signal) => {
    // A signal as shells tell it.
    process.exit(code ?? 128 + (signal === "SIGKILL" ? 9 : signal === "SIGSEGV" ? 11 : signal === "SIGABRT" ? 6 : 15));
  });
});
