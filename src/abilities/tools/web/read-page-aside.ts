import { fork } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { Failure } from "../../../kernel/failure.ts";
import { isStarted } from "../../../kernel/is-started.ts";
import type { ReadablePage } from "./read-page.ts";

export interface PageToRead {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly url: string;
}

const TIMEOUT_MS = 10_000;
const MEMORY_MB = 256;
const AT_A_TIME = 2;

/**
 * Reads pages in a process of their own: a hostile one can make the reader slow or run out of memory, and then it is this process that ends. It
 * may neither write files nor start anything. A few at a time; the others wait.
 */
export class PageReader {
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  async read(page: PageToRead, signal: AbortSignal): Promise<ReadablePage> {
    await this.#enter();
    try {
      signal.throwIfAborted();
      return await readAside(page, signal);
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async #enter(): Promise<void> {
    if (this.#running >= AT_A_TIME) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
  }
}

async function readAside(page: PageToRead, signal: AbortSignal): Promise<ReadablePage> {
  const program = new URL(`./read-page-worker${extname(import.meta.url)}`, import.meta.url);
  const child = fork(program, {
    serialization: "advanced",
    execArgv: [`--max-old-space-size=${MEMORY_MB}`, "--permission", "--allow-fs-read=*", "--disable-warning=SecurityWarning"],
    env: {},
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  if (!isStarted(child)) throw new Failure("tool.unavailable", "no process can be started to read the page; try again later");
  const ended = new AbortController();
  const limits = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS), ended.signal]);
  try {
    child.send(page);
    const died = once(child, "exit", { signal: limits }).then(() => {
      throw new Failure("tool.failed", "the page is too large or too complicated to be read");
    });
    const [answer] = (await Promise.race([once(child, "message", { signal: limits }), died])) as [ReadablePage];
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    if (limits.aborted) throw new Failure("tool.failed", "the page is too complicated to be read in time");
    throw error;
  } finally {
    ended.abort();
    child.kill("SIGKILL");
  }
}
