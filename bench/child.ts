import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";

/** A child that hangs is a bug of the benchmark; no single run takes nearly this long. */
const LIMIT_MS = 600_000;

type Message<Result> = { readonly ready: true } | { readonly result: Result };

export interface Child<Result> {
  /** Resolves when the child says that it is set up and waiting. */
  readonly ready: Promise<void>;
  readonly result: Promise<Result>;
  /** Tells the child to go on (see `whenTold`). */
  go(): void;
  /** Stops the process where it stands, as a suspended machine or a long pause does; nothing in it runs until it is woken. */
  freeze(): void;
  wake(): void;
}

/** Starts a file of this folder as a process of its own; what is measured happens there, with nothing else on its event loop. */
export function startChild<Result>(
  file: string,
  task: unknown,
  environment: Readonly<Record<string, string>> = {},
  limitMs = LIMIT_MS,
): Child<Result> {
  const child = spawn(process.execPath, [join(import.meta.dirname, file), JSON.stringify(task)], {
    stdio: ["ignore", process.stderr, process.stderr, "ipc"],
    env: { ...process.env, ...environment },
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const limit = setTimeout(kill, limitMs);
  const ready = Promise.withResolvers<void>();
  const done = Promise.withResolvers<Result>();
  let answer: { result: Result } | undefined;
  child.on("message", (message: Message<Result>) => {
    if ("ready" in message) ready.resolve();
    else answer = message;
  });
  child.on("error", done.reject);
  child.on("exit", (code, signal) => {
    clearTimeout(limit);
    process.removeListener("exit", kill);
    if (answer && code === 0) done.resolve(answer.result);
    else done.reject(new Error(`${file} ${JSON.stringify(task)} ended with ${signal ?? code}`));
  });
  done.promise.then(
    () => ready.resolve(),
    (error) => ready.reject(error),
  );
  ready.promise.catch(() => {});
  return {
    ready: ready.promise,
    result: done.promise,
    go: () => void (child as ChildProcess).send({ go: true }),
    freeze: () => void child.kill("SIGSTOP"),
    wake: () => void child.kill("SIGCONT"),
  };
}

export function runChild<Result>(
  file: string,
  task: unknown,
  environment?: Readonly<Record<string, string>>,
  limitMs?: number,
): Promise<Result> {
  return startChild<Result>(file, task, environment, limitMs).result;
}

/** In the child: does the task it was started with and reports the result. */
export async function serve<Task, Result>(work: (task: Task) => Promise<Result>): Promise<void> {
  const result = await work(JSON.parse(process.argv[2] as string) as Task);
  await new Promise<void>((resolve, reject) =>
    process.send?.({ result }, undefined, undefined, (error) => (error ? reject(error) : resolve())),
  );
  process.disconnect();
}

/** In the child: says that it is ready and waits to be told to go on. */
export async function whenTold(): Promise<void> {
  const told = new Promise<void>((resolve) => process.once("message", () => resolve()));
  process.send?.({ ready: true });
  await told;
}
