import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * A model that says what a test wants it to say: a real HTTP server that speaks OpenAI's chat completions, streaming and not.
 *
 *     const server = await modelServer([
 *       { calls: [{ tool: "file_read", args: { path: "a.txt" } }] },   // first request
 *       { status: 429, headers: { "retry-after": "1" } },              // second
 *       "It says hello.",                                              // third
 *     ]);
 *     // providers: { test: { type: openai-compatible, base_url: server.url } }, model: test/any
 *     server.requests[0].body.messages; await server.close();
 *
 * A function instead of a list gets each request and its number (from 0), so that one server can serve many sessions at once.
 */
export interface ModelServer {
  /** Ends in `/v1`. */
  readonly url: string;
  readonly requests: SeenRequest[];
  /** What comes from now on; the count of replies begins anew, what was recorded stays. */
  play(script: Script): void;
  /** Resolves when so many requests have come in all. */
  seen(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the client under test sends; tests look inside
  readonly body: any;
  readonly at: number;
  /** The client went away before the answer was whole. */
  abandoned: boolean;
}

export interface ScriptedCall {
  readonly tool: string;
  /** Text is sent as it is, well-formed or not. */
  readonly args: unknown;
  readonly id?: string;
  /** Over how many chunks the arguments are spread; 3 unless told. */
  readonly pieces?: number;
}

export interface ScriptedReply {
  /** A list: these very chunks. One text: a chunk for each word. */
  readonly text?: string | readonly string[];
  /** For models that show it. */
  readonly reasoning?: string;
  readonly calls?: readonly ScriptedCall[];
  /** Another than 200: an error, with `error` as its words. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly error?: string;
  /** Sent instead of anything else, as it is, with `status` and `headers`. */
  readonly raw?: string;
  /** Of `raw`: between two of its events. */
  readonly eventDelayMs?: number;
  readonly finish?: "stop" | "length" | "tool_calls" | "content_filter";
  readonly usage?: { readonly input: number; readonly output: number; readonly cached?: number };
  /** Before the first byte. */
  readonly delayMs?: number;
  /** Between two chunks. */
  readonly chunkDelayMs?: number;
  /** The connection breaks after so many chunks. */
  readonly cutAfter?: number;
  /** Nothing more comes after so many chunks, and the connection stays open; 0: no first byte either. */
  readonly hangAfter?: number;
}

export type Script = readonly (ScriptedReply | string)[] | ((request: SeenRequest, count: number) => ScriptedReply | string);

export async function modelServer(script: Script = []): Promise<ModelServer> {
  let playing = script;
  let played = 0;
  const requests: SeenRequest[] = [];
  const waiting: (() => void)[] = [];
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const path = (incoming.url ?? "").split("?")[0] ?? "";
      const seen: SeenRequest = {
        method: incoming.method ?? "",
        path,
        headers: incoming.headers,
        body: chunks.length === 0 ? null : JSON.parse(Buffer.concat(chunks).toString()),
        at: performance.now(),
        abandoned: false,
      };
      outgoing.on("close", () => {
        seen.abandoned = !outgoing.writableFinished;
      });
      if (path.endsWith("/models")) return sendJson(outgoing, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
      requests.push(seen);
      for (const wake of waiting.splice(0)) wake();
      const count = played++;
      const reply = typeof playing === "function" ? playing(seen, count) : playing[count];
      // 400, so that no client tries again: a script that is too short must be seen.
      const chosen = reply ?? { status: 400, error: `the script has no reply number ${count + 1}` };
      answer(seen, outgoing, typeof chosen === "string" ? { text: chosen } : chosen, count).catch(() => outgoing.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    play: (next) => {
      playing = next;
      played = 0;
    },
    seen: async (count) => {
      while (requests.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(seen: SeenRequest, outgoing: ServerResponse, reply: ScriptedReply, count: number): Promise<void> {
  if (reply.delayMs) await sleep(reply.delayMs);
  if (reply.hangAfter === 0) return;
  if (reply.cutAfter === 0) return void outgoing.destroy();
  if (reply.raw !== undefined) {
    outgoing.writeHead(reply.status ?? 200, reply.headers);
    if (reply.eventDelayMs === undefined) return void outgoing.end(reply.raw);
    for (const event of reply.raw.split(/(?<=\n\n)/)) {
      outgoing.write(event);
      await sleep(reply.eventDelayMs);
    }
    return void outgoing.end();
  }
  if (reply.status !== undefined && reply.status !== 200) {
    const message = reply.error ?? `scripted ${reply.status}`;
    return sendJson(outgoing, reply.status, { error: { message, type: "scripted", code: null, param: null } }, reply.headers);
  }
  const base = { id: `chatcmpl-${count}`, created: 1_800_000_000, model: seen.body?.model ?? "scripted" };
  const calls = (reply.calls ?? []).map((call, index) => ({
    index,
    id: call.id ?? `call_${count}_${index}`,
    type: "function",
    function: { name: call.tool, arguments: typeof call.args === "string" ? call.args : JSON.stringify(call.args) },
  }));
  const finish = reply.finish ?? (calls.length > 0 ? "tool_calls" : "stop");
  if (!seen.body?.stream) return sendWhole(outgoing, reply, base, calls, finish);

  outgoing.writeHead(200, { "content-type": "text/event-stream", ...reply.headers });
  let sent = 0;
  for (const delta of deltas(reply, calls)) {
    if (sent === reply.hangAfter) return;
    if (sent === reply.cutAfter) return void outgoing.destroy();
    if (sent > 0 && reply.chunkDelayMs) await sleep(reply.chunkDelayMs);
    const event = { ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: null }] };
    // Waits for the client, so that "cut after N" means that N chunks have left.
    await new Promise<void>((resolve) => outgoing.write(`data: ${JSON.stringify(event)}\n\n`, () => resolve()));
    sent++;
  }
  if (reply.hangAfter !== undefined) return;
  if (reply.cutAfter !== undefined) return void outgoing.destroy();
  const end = { ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  outgoing.write(`data: ${JSON.stringify(end)}\n\n`);
  if (seen.body.stream_options?.include_usage)
    outgoing.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [], usage: usageOf(reply) })}\n\n`);
  outgoing.end("data: [DONE]\n\n");
}

interface WireCall {
  readonly index: number;
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Text, then calls; the pieces of parallel calls come in turns. */
function* deltas(reply: ScriptedReply, calls: readonly WireCall[]): Generator<unknown> {
  if (reply.reasoning) yield { role: "assistant", reasoning_content: reply.reasoning };
  const pieces = typeof reply.text === "string" ? (reply.text.match(/\S*\s*/g) ?? []) : (reply.text ?? []);
  for (const content of pieces) if (content !== "") yield { role: "assistant", content };
  for (const call of calls) yield { tool_calls: [{ ...call, function: { name: call.function.name, arguments: "" } }] };
  const spread = calls.map((call, index) => inPieces(call.function.arguments, reply.calls?.[index]?.pieces ?? 3));
  for (let round = 0; spread.some((some) => round < some.length); round++)
    for (const [index, some] of spread.entries()) {
      const piece = some[round];
      if (piece !== undefined) yield { tool_calls: [{ index, function: { arguments: piece } }] };
    }
}

function inPieces(text: string, count: number): string[] {
  const size = Math.max(1, Math.ceil(text.length / count));
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size));
}

function sendWhole(outgoing: ServerResponse, reply: ScriptedReply, base: object, calls: readonly WireCall[], finish: string): void {
  const content = typeof reply.text === "string" ? reply.text : (reply.text?.join("") ?? null);
  const message = { role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  const choices = [{ index: 0, message, finish_reason: finish }];
  sendJson(outgoing, 200, { ...base, object: "chat.completion", choices, usage: usageOf(reply) }, reply.headers);
}

function usageOf({ usage = { input: 10, output: 5 } }: ScriptedReply): unknown {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
  };
}

function sendJson(outgoing: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  outgoing.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}
