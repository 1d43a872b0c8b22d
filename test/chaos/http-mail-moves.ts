import type { HttpClient } from "./http-client.ts";
import { doneKey, type Outcome, POOL } from "./http-records.ts";
import type { Answered } from "./http-wire.ts";

interface SentMail {
  readonly id: string;
  readonly fence: number;
  readonly content: { readonly value: string };
}

export async function sendMail(client: HttpClient): Promise<void> {
  const value = client.unique();
  await client.keyed("/api/mail", { to: client.pick(client.plan.names), type: "chaos", content: { value } }, (answer) => {
    if (answer && answer.status !== 201) return client.odd("a mail", answer);
    client.tell({ kind: "sent", value, id: answer ? (answer.body.id as string) : null });
  });
}

/** Receives a few and acks most: some plainly, some together with a write. The rest comes again. */
export async function receiveMail(client: HttpClient): Promise<void> {
  const answer = await client.ask("POST", "/api/mail/receive", { body: { max: 4, visibility_ms: 700 } });
  if (answer.status === null) return;
  if (answer.status !== 200) return client.odd("a receipt", answer);
  const mail = answer.body.mail as SentMail[];
  for (const { id, fence, content } of mail) client.tell({ kind: "received", id, fence, value: content.value });
  for (const each of mail) {
    const choice = client.random.fraction();
    if (choice < 0.5) await ack(client, each);
    else if (choice < 0.85) await ackWithWrite(client, each);
    else if (choice < 0.93) await client.ask("POST", `/api/mail/${each.id}/nack`, { body: { fence: each.fence, delay_ms: 50 } });
  }
}

async function ack(client: HttpClient, { id, fence, content: { value } }: SentMail): Promise<void> {
  const answer = await client.ask("POST", `/api/mail/${id}/ack`, { body: { fence } });
  const outcome: Outcome = answer.status === null ? "unknown" : outcomeOf(client, answer);
  client.tell({ kind: "acked", id, fence, value, outcome, with: null });
}

async function ackWithWrite(client: HttpClient, { id, fence, content: { value } }: SentMail): Promise<void> {
  const key = doneKey(client.generation);
  const body = { writes: [{ key, value }], ack: [{ id, fence }] };
  await client.keyed(`/api/pools/${POOL}/batch`, body, (answer) => {
    const outcome: Outcome = answer === null ? "unknown" : outcomeOf(client, answer);
    client.tell({ kind: "acked", id, fence, value, outcome, with: key });
  });
}

function outcomeOf(client: HttpClient, answer: Answered): Outcome {
  if (answer.status === 200 || answer.status === 201) return "done";
  if (answer.status !== 409) client.odd("an ack", answer);
  return "refused";
}
