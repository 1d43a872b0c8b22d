import type { LiveEvent } from "../contract/wire.ts";
import { span } from "./spans.ts";
import { harmless, oneLine, paint } from "./terminal.ts";

interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const SHOWN_ARGUMENTS = 60;
const SHOWN_NOTE = 100;
const NARROW = 40;
const WIPE = "\r\x1b[K";

/** An answer as it comes, at a terminal: words to `out`, what the agent does meanwhile to `aside`. */
export class ChatView {
  readonly #out: Screen;
  readonly #aside: Screen;
  /** What was said since the last call. */
  #said = "";
  #lineOpen = false;
  #status = false;
  /** Of the calls of the answer that is being worked on. */
  readonly #calls = new Map<number, { readonly tool: string; readonly args: string }>();

  constructor(out: Screen, aside: Screen) {
    this.#out = out;
    this.#aside = aside;
  }

  see(event: LiveEvent): void {
    const { dim, red } = paint(this.#aside);
    switch (event.kind) {
      case "text":
        this.#said += event.text;
        this.#say(event.text);
        return;
      case "restart":
        if (this.#said !== "") this.#tell(dim("(the answer starts again)"));
        this.#said = "";
        return;
      case "call":
        this.#said = "";
        this.#calls.set(event.place, { tool: event.tool, args: argumentsInWords(event.args) });
        this.#showStatus(`· ${event.tool} ${this.#calls.get(event.place)?.args} …`);
        return;
      case "progress":
        this.#showStatus(`· ${this.#calls.get(event.place)?.tool ?? event.tool} ${event.text.trim().split("\n").at(-1) ?? ""}`);
        return;
      case "called": {
        const { args } = this.#calls.get(event.place) ?? { args: "" };
        const what = `· ${harmless(event.tool)}${args === "" ? "" : ` ${args}`}`;
        const failed = event.failed ? red(`  ${oneLine(event.note, SHOWN_NOTE)}`) : "";
        this.#tell(`${dim(`${what}  ${span(event.ms)}`)}${failed}`);
        return;
      }
      case "note":
        this.#tell(dim(`(${oneLine(event.text, SHOWN_NOTE)})`));
        return;
      case "asks":
        this.pause();
    }
  }

  /** Something else is to be written below. */
  pause(): void {
    this.#wipe();
    if (this.#lineOpen) this.#out.write("\n");
    this.#lineOpen = false;
  }

  /** What was committed has the last word. */
  end(reply: string | null): void {
    if (reply !== null) this.#say(reply.startsWith(this.#said) ? reply.slice(this.#said.length) : `${this.#lineOpen ? "\n" : ""}${reply}`);
    this.pause();
  }

  #say(text: string): void {
    if (text === "") return;
    this.#wipe();
    this.#out.write(harmless(text));
    this.#lineOpen = !text.endsWith("\n");
  }

  #tell(line: string): void {
    this.pause();
    this.#aside.write(`${line}\n`);
  }

  /** One line that the next thing replaces; only where a terminal can take it back. */
  #showStatus(text: string): void {
    if (this.#aside.isTTY !== true) return;
    this.pause();
    this.#aside.write(paint(this.#aside).dim(oneLine(text, Math.max(NARROW, (this.#aside.columns ?? 80) - 1))));
    this.#status = true;
  }

  #wipe(): void {
    if (this.#status) this.#aside.write(WIPE);
    this.#status = false;
  }
}

const PAIR = /"(?:[^"\\]|\\.)*"\s*:\s*("(?:[^"\\]|\\.)*"?|[^,{}]+)/g;

/** The values alone tell most: `notes.md` rather than `{"path":"notes.md"}`. What comes is short, and may be cut off. */
export function argumentsInWords(args: string): string {
  if (!args.startsWith("{")) return oneLine(args, SHOWN_ARGUMENTS);
  const values = [...args.matchAll(PAIR)].map(([, value = ""]) =>
    value.replace(/^"|"$/g, "").replaceAll('\\"', '"').replaceAll("\\n", " "),
  );
  return oneLine(values.join(" "), SHOWN_ARGUMENTS);
}
