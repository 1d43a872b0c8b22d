import { createInterface } from "node:readline";

/** Puts a question to the person in between; null: they have left, or nobody wants to know any more. */
export type AskPerson = (question: string, signal: AbortSignal) => Promise<string | null>;

/** What talks for the person at a terminal. */
export interface Speaker {
  prompt(): string;
  /** Says one message, shows what is answered, and answers the exit code. */
  ask(message: string, askPerson: AskPerson): Promise<number>;
  /** Stops what is being answered now. */
  interrupt(): Promise<void>;
}

/** What was typed before, the newest first. */
export interface TypedBefore {
  readonly lines: readonly string[];
  keep(line: string): void;
}

interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

const STOP = /^\s*\/stop\s*$/i;
const LEAVE = /^\s*\/(exit|quit)\s*$/i;
const GOES_ON = "… ";

/**
 * One message after another until the person leaves, with one exception: what stops an answer cannot wait for it to end. A line that ends
 * with a backslash goes on in the next one. Ctrl-C stops what is being answered; pressed again, or twice where nothing is, it leaves.
 */
export function talkAtTerminal({ input, output }: Terminal, speaker: Speaker, before: TypedBefore = NOTHING_BEFORE): Promise<number> {
  const lines = createInterface({ input, output, terminal: true, history: [...before.lines], historySize: before.lines.length + 500 });
  const waiting: string[] = [];
  let begun: string[] = [];
  let asked: ((answer: string | null) => void) | undefined;
  let exit = 0;
  let stopping: Promise<unknown> | undefined;
  let busy = false;
  let interrupted = false;
  let left = false;
  const prompt = (): void => {
    lines.setPrompt(begun.length > 0 ? GOES_ON : speaker.prompt());
    lines.prompt();
  };
  const askPerson: AskPerson = (question, signal) => {
    if (left || signal.aborted) return Promise.resolve(null);
    return new Promise((resolve) => {
      asked = resolve;
      signal.addEventListener("abort", () => asked === resolve && answerPerson(null), { once: true });
      lines.setPrompt(question);
      lines.prompt();
    });
  };
  const answerPerson = (answer: string | null): void => {
    const resolve = asked;
    asked = undefined;
    resolve?.(answer);
  };
  // What answers a question is nothing to bring back with the arrow keys, nor is what was not meant to be kept.
  lines.on("history", (history: string[]) => {
    if (asked || history[0]?.startsWith(" ")) history.shift();
  });
  return new Promise<number>((resolve, reject) => {
    const answerAll = async (): Promise<void> => {
      busy = true;
      for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) exit = await speaker.ask(line, askPerson);
      await stopping;
      busy = false;
      interrupted = false;
      if (left) resolve(exit);
      else prompt();
    };
    lines.on("line", (line) => {
      if (asked) return answerPerson(line);
      if (begun.length === 0 && LEAVE.test(line)) return lines.close();
      if (busy && STOP.test(line)) {
        waiting.length = 0;
        stopping = speaker.ask(line, askPerson).catch(reject);
        return;
      }
      interrupted = busy && interrupted;
      if (line.trim() !== "" && !line.startsWith(" ")) before.keep(line);
      if (line.endsWith("\\")) {
        begun.push(line.slice(0, -1));
        if (!busy) prompt();
        return;
      }
      const message = [...begun, line].join("\n");
      begun = [];
      if (message.trim() !== "") waiting.push(message);
      if (!busy) answerAll().catch(reject);
    });
    lines.on("SIGINT", () => {
      if (interrupted) {
        if (busy) return resolve(1);
        return lines.close();
      }
      interrupted = true;
      waiting.length = 0;
      if (busy) {
        answerPerson(null);
        speaker.interrupt().catch(reject);
        return;
      }
      begun = [];
      lines.write(null, { ctrl: true, name: "e" });
      lines.write(null, { ctrl: true, name: "u" });
      output.write("\n(Ctrl-C again or Ctrl-D leaves)\n");
      prompt();
    });
    lines.on("close", () => {
      left = true;
      answerPerson(null);
      if (!busy) resolve(exit);
    });
    prompt();
  }).finally(() => lines.close());
}

const NOTHING_BEFORE: TypedBefore = { lines: [], keep: () => {} };
