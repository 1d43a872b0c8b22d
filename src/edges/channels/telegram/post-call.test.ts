import { createServer as createPlainServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { Readable } from "node:stream";
import { afterEach, expect, test, vi } from "vitest";
import { postCall } from "./post-call.ts";
import { sendTroubleOf } from "./telegram-trouble.ts";

const NEVER = new AbortController().signal;
const JSON_CALL = { contentType: "application/json", body: "{}" };
const open: Server[] = [];

async function listening(server: Server): Promise<number> {
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

afterEach(() => {
  vi.useRealTimers();
  for (const server of open.splice(0)) server.close();
});

test("a connection that does not come about in time is given up, and nothing has left by then", async () => {
  let asked = 0;
  const connected = Promise.withResolvers<void>();
  // It takes the connection and never says that it can be trusted.
  const port = await listening(
    createServer((socket) => {
      socket.on("error", () => {}).on("data", () => asked++);
      connected.resolve();
    }),
  );
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const posted = postCall(`https://127.0.0.1:${port}/x`, JSON_CALL, NEVER).catch(sendTroubleOf);
  await connected.promise;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await posted).toMatchObject({ kind: "later", isWhole: true, message: expect.stringContaining("ETIMEDOUT") });
  expect(asked).toBeLessThanOrEqual(1);
});

test("texts and streams arrive whole, answers come back whole, and a redirection is not followed", async () => {
  const heard: string[] = [];
  const port = await listening(
    createPlainServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        heard.push(`${request.headers["content-type"]} ${Buffer.concat(pieces)}`);
        if (request.url === "/elsewhere") response.writeHead(302, { location: "/x" });
        // Cut within a character.
        const words = Buffer.from("grüße");
        response.write(words.subarray(0, 3));
        setImmediate(() => response.end(words.subarray(3)));
      });
    }),
  );
  const url = `http://127.0.0.1:${port}`;
  expect(await postCall(`${url}/x`, { contentType: "a/b", body: "é" }, NEVER)).toEqual({ status: 200, text: "grüße" });
  const body = Readable.from(["one ", "two"], { objectMode: false });
  expect(await postCall(`${url}/elsewhere`, { contentType: "c/d", body }, NEVER)).toEqual({ status: 302, text: "grüße" });
  expect(heard).toEqual(["a/b é", "c/d one two"]);
});

test("what may not leave any more does not, and what is aborted says why", async () => {
  let asked = 0;
  const port = await listening(createPlainServer(() => asked++));
  const url = `http://127.0.0.1:${port}/x`;
  await expect(postCall(url, { ...JSON_CALL, isAllowed: () => false }, NEVER)).rejects.toThrow("may not be posted");
  expect(asked).toBe(0);
  const ending = new AbortController();
  const posted = postCall(url, JSON_CALL, ending.signal);
  await vi.waitFor(() => expect(asked).toBe(1), 10_000);
  ending.abort(new Error("enough"));
  await expect(posted).rejects.toThrow("enough");
  await expect(postCall(url, JSON_CALL, ending.signal)).rejects.toThrow("enough");
});
