import { createInterface } from "node:readline";

/** What talks for the person at a terminal. */
export interface Speaker {
  prompt(): string;
  /** Says one line, shows what is answered, and answers the exit code. */
  ask(line: string): Promise<number>;
  /** Stops what is being answered now. */
  interrupt(): Promise<void>;
}

interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

const STOP = /^\s*\/stop\s*$/i;
const LEAVE = /^\s*\/(exit|quit)\s*$/i;

/**
 * One line after another until the person leaves, with one exception: what stops an answer cannot wait for it to end. Ctrl-C stops what
 * is being answered, and leaves where nothing is, or when it is pressed again.
 */
export function talkAtTerminal({ input, output }: Terminal, speaker: Speaker): Promise<number> {
  const lines = createInterface({ input, output, terminal: true });
  const waiting: string[] = [];
  let exit = 0;
  let stopping: Promise<unknown> | undefined;
  let busy = false;
  let interrupted = false;
  let left = false;
  const prompt = (): void => {
    lines.setPrompt(speaker.prompt());
    lines.prompt();
  };
  return new Promise<number>((resolve, reject) => {
    const answerAll = async (): Promise<void> => {
      busy = true;
      for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) exit = await speaker.ask(line);
      await stopping;
      busy = false;
      interrupted = false;
      if (left) resolve(exit);
      else prompt();
    };
    lines.on("line", (line) => {
      if (LEAVE.test(line)) return lines.close();
      if (busy && STOP.test(line)) {
        waiting.length = 0;
        stopping = speaker.ask(line).catch(reject);
        return;
      }
      if (line.trim() !== "") waiting.push(line);
      if (!busy) answerAll().catch(reject);
    });
    lines.on("SIGINT", () => {
      if (!busy) return lines.close();
      if (interrupted) return resolve(1);
      interrupted = true;
      waiting.length = 0;
      speaker.interrupt().catch(reject);
    });
    lines.on("close", () => {
      left = true;
      if (!busy) resolve(exit);
    });
    prompt();
  }).finally(() => lines.close());
}
