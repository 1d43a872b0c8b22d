import { expect, test } from "vitest";
import { readServerSentEvents, type ServerSentEvent } from "./server-sent-events.ts";

async function read(...pieces: (string | Uint8Array)[]): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = [];
  const bytes = pieces.map((piece) => (typeof piece === "string" ? new TextEncoder().encode(piece) : piece));
  for await (const event of readServerSentEvents(ReadableStream.from(bytes))) events.push(event);
  return events;
}

test("events are read across pieces, comments are left out, lines of data are joined", async () => {
  expect(await read(":\n\nevent: te", "xt\ndata: {\ndata: }\nid: 1\n", "\ndata: x\n\nevent: cut off")).toEqual([
    { id: "1", event: "text", data: "{\n}" },
    { id: null, event: "message", data: "x" },
  ]);
});

test("a character that was cut in two is whole again", async () => {
  const bytes = new TextEncoder().encode("data: ü\n\n");
  expect(await read(bytes.slice(0, 7), bytes.slice(7))).toEqual([{ id: null, event: "message", data: "ü" }]);
});
