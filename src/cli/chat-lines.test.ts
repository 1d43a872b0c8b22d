import { PassThrough } from "node:stream";
import { expect, test, vi } from "vitest";
import { type AskPerson, talkAtTerminal } from "./chat-lines.ts";

/** A person who types, and a house that answers a line when the test says so. */
class Room {
  readonly heard: string[] = [];
  readonly #input = new PassThrough();
  readonly #answers = new Map<string, (exit: number) => void>();
  readonly ended: Promise<number>;
  interrupts = 0;
  askPerson: AskPerson = async () => null;
  readonly kept: string[] = [];

  constructor(before: readonly string[] = []) {
    const output = new PassThrough();
    output.resume();
    this.ended = talkAtTerminal(
      { input: this.#input, output },
      {
        prompt: () => "> ",
        ask: (line, askPerson) => {
          this.heard.push(line);
          this.askPerson = askPerson;
          return new Promise((resolve) => this.#answers.set(line, resolve));
        },
        interrupt: async () => {
          this.interrupts++;
        },
      },
      { lines: before, keep: (line) => this.kept.push(line) },
    );
  }

  type(text: string): void {
    this.#input.write(text);
  }

  answer(line: string, exit = 0): void {
    this.#answers.get(line)?.(exit);
  }

  hears(...lines: string[]): Promise<void> {
    return vi.waitFor(() => expect(this.heard).toEqual(lines), 10_000);
  }
}

const CTRL_C = "\x03";
const CTRL_D = "\x04";

test("lines are said one after another, empty ones not at all, and the last exit code counts", async () => {
  const room = new Room();
  room.type("one\r\rtwo\r");
  await room.hears("one");
  room.answer("one", 1);
  await room.hears("one", "two");
  room.type(CTRL_D);
  room.answer("two", 0);
  expect(await room.ended).toBe(0);
});

test("/stop is heard while something is being answered, and what was typed ahead is not said any more", async () => {
  const room = new Room();
  room.type("one\rtwo\r/stop\r");
  await room.hears("one", "/stop");
  room.answer("one", 1);
  room.answer("/stop", 0);
  room.type("three\r");
  await room.hears("one", "/stop", "three");
  room.answer("three", 0);
  room.type("/exit\r");
  expect(await room.ended).toBe(0);
  expect(room.heard).not.toContain("/exit");
});

test("Ctrl-C stops what is being answered; where nothing is it clears the line, and leaves when it is pressed again", async () => {
  const room = new Room();
  room.type("one\r");
  await room.hears("one");
  room.type(CTRL_C);
  await vi.waitFor(() => expect(room.interrupts).toBe(1), 10_000);
  room.answer("one", 1);
  room.type("two\r");
  await room.hears("one", "two");
  room.answer("two", 0);
  await new Promise((resolve) => setImmediate(resolve));
  room.type("half a thou");
  room.type(CTRL_C);
  room.type("three\r");
  await room.hears("one", "two", "three");
  room.answer("three", 0);
  await new Promise((resolve) => setImmediate(resolve));
  room.type(CTRL_C);
  room.type(CTRL_C);
  expect(await room.ended).toBe(0);
  expect(room.interrupts).toBe(1);
});

test("Ctrl-C twice leaves what cannot be stopped", async () => {
  const room = new Room();
  room.type("one\r");
  await room.hears("one");
  room.type(CTRL_C);
  room.type(CTRL_C);
  expect(await room.ended).toBe(1);
});

test("a line that ends with a backslash goes on in the next", async () => {
  const room = new Room();
  room.type("one\\\rand\\\rmore\r");
  await room.hears("one\nand\nmore");
  room.type(CTRL_D);
  room.answer("one\nand\nmore");
  expect(await room.ended).toBe(0);
});

const UP = "\x1b[A";

test("what was typed before comes back with the arrow keys; what begins with a space is not kept", async () => {
  const room = new Room(["newest", "older"]);
  room.type(`${UP}${UP}\r`);
  await room.hears("older");
  room.answer("older");
  await new Promise((resolve) => setImmediate(resolve));
  room.type(" secret\r");
  await room.hears("older", " secret");
  room.answer(" secret");
  await new Promise((resolve) => setImmediate(resolve));
  room.type(`${UP}\r`);
  await room.hears("older", " secret", "older");
  room.answer("older");
  expect(room.kept).toEqual(["older", "older"]);
  room.type(CTRL_D);
  await room.ended;
});

test("a question in between takes the next line, which is no message; one that nobody asks any more takes none", async () => {
  const room = new Room();
  const patient = new AbortController();
  room.type("one\r");
  await room.hears("one");
  const answer = room.askPerson("allow it? ", patient.signal);
  room.type("yes\r");
  expect(await answer).toBe("yes");
  const other = room.askPerson("allow it? ", patient.signal);
  patient.abort();
  expect(await other).toBeNull();
  room.answer("one");
  room.type("two\r");
  await room.hears("one", "two");
  expect(room.kept).toEqual(["one", "two"]);
  room.answer("two");
  room.type(CTRL_D);
  expect(await room.ended).toBe(0);
});
