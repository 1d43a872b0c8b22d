import { z } from "zod";
import { ledgerEvent } from "../../contract/wire.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Store } from "../../store/store.ts";
import { OVERSEERS, type Route, stream } from "./route.ts";

const sequence = z.string().regex(/^\d{1,15}$/, "expected the sequence number of an event");
/** `last=20` begins that many events before the newest. `subject=pool/house`: elements of the subject from the left, each percent-encoded where it contains a slash. */
const subject = z.string().max(1_000);

export function eventRoutes(store: Store): Route[] {
  return [
    stream({
      path: "/api/events",
      summary: "The ledger from a sequence number on; resumes by Last-Event-ID",
      allow: OVERSEERS,
      query: z.strictObject({ after: sequence.optional(), last: sequence.optional(), subject: subject.optional() }),
      events: { "*": ledgerEvent },
      open: async ({ query, header }) => {
        const seen = header("last-event-id");
        const after =
          query.last === undefined || seen !== undefined
            ? firstAfter(seen, query.after)
            : await store.ledger.beforeLast(Number(query.last));
        const wanted = elements(query.subject);
        return async (send, signal) => {
          for await (const event of store.follow(after, signal)) {
            if (wanted.every((element, index) => event.subject[index] === element))
              await send({ id: String(event.seq), event: event.type, data: event });
          }
        };
      },
    }),
  ];
}

/** Where a stream goes on: after the last event a client has seen, else where it asks to begin. */
export function firstAfter(lastEventId: string | undefined, after: string | undefined): number {
  const text = lastEventId ?? after ?? "0";
  if (!sequence.safeParse(text).success) throw new Failure("request.malformed", "after: expected the sequence number of an event");
  return Number(text);
}

function elements(text: string | undefined): string[] {
  if (text === undefined || text === "") return [];
  try {
    return text.split("/").map(decodeURIComponent);
  } catch (error) {
    throw new Failure("request.malformed", "subject: expected percent-encoded elements, separated by /", { cause: error });
  }
}
