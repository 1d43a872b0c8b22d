import { Hono } from "hono";
import { type Health, inboundMessage } from "../../contract/wire.ts";
import type { Accept } from "../../drivers/intake/accept.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Live } from "../../kernel/live.ts";
import type { Log } from "../../kernel/log.ts";
import { readRun } from "../../records/sessions/runs.ts";
import type { Store } from "../../store/store.ts";
import { errorResponse } from "./error-response.ts";
import { eventStream } from "./event-stream.ts";
import { knownHost, limitedBody, operatorOnly, ownOrigin } from "./guards.ts";
import { readBody } from "./read-body.ts";
import { streamRun } from "./run-live.ts";

const RUN_ID = /^[0-9a-z]{20}$/;

export interface ApiParts {
  readonly store: Store;
  readonly accept: Accept;
  readonly live: Live;
  readonly log: Log;
  readonly operatorToken: string;
  /** The configured name or address we listen on. */
  readonly host: string;
  readonly version: string;
  readonly node: string;
  /** False from the moment the daemon begins to stop. */
  readonly isReady: () => boolean;
  /** Ends open event streams. */
  readonly stopping: AbortSignal;
}

export function createApp(parts: ApiParts): Hono {
  const { store, live, log, stopping } = parts;
  const health = (status: Health["status"]): Health => ({ status, version: parts.version, node: parts.node });
  const app = new Hono();
  app.onError((error) => errorResponse(error, log));
  app.notFound((context) => errorResponse(new Failure("request.not_found", `there is no ${context.req.method} ${context.req.path}`), log));
  app.use(knownHost(parts.host), ownOrigin);

  app.get("/", (context) => context.text(`Guildhall ${parts.version} is running. Talk to it with \`guildhall chat\`.\n`));
  app.get("/healthz", (context) => context.json(health("ok")));
  app.get("/readyz", (context) => {
    if (!parts.isReady()) throw new Failure("daemon.stopping", "the daemon is stopping");
    return context.json(health("ready"));
  });

  app.use("/api/*", operatorOnly(parts.operatorToken), limitedBody);
  app.post("/api/messages", async (context) => context.json(await parts.accept(await readBody(context, inboundMessage)), 202));
  app.get("/api/runs/:id", async (context) => context.json(await knownRun(store, context.req.param("id"))));
  app.get("/api/runs/:id/live", async (context) => {
    const { id } = await knownRun(store, context.req.param("id"));
    return eventStream(context, stopping, log, (stream, signal) => streamRun(store, live, id, stream, signal));
  });
  app.get("/api/events", (context) => {
    const after = sequenceNumber(context.req.header("last-event-id") ?? context.req.query("after") ?? "0");
    return eventStream(context, stopping, log, async (stream, signal) => {
      for await (const event of store.follow(after, signal))
        await stream.writeSSE({ id: String(event.seq), event: event.type, data: JSON.stringify(event) });
    });
  });
  return app;
}

async function knownRun(store: Store, id: string) {
  const run = RUN_ID.test(id) ? await readRun(store.read, id) : undefined;
  if (!run) throw new Failure("request.not_found", `there is no run "${id}"`);
  return run;
}

function sequenceNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Failure("request.malformed", "after: expected the sequence number of an event");
  return Number(text);
}
