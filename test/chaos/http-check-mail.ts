import { type Histories, only } from "./http-check-pools.ts";
import type { Told } from "./http-records.ts";

/** A mail as it stands in the end. */
export interface FinalMail {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly state: string;
}

/** Nothing lost, nothing doubled, nothing after its ack, and an ack's write exactly with the ack. */
export function mailProblems(told: readonly Told[], mail: readonly FinalMail[], histories: Histories): string[] {
  const problems: string[] = [];
  const final = new Map(mail.map((each) => [each.id, each]));
  const received = only(told, "received");
  const contentOf = new Map(received.map(({ id, value }) => [id, value]));
  const sent = only(told, "sent");
  for (const { id, value } of sent) {
    if (id === null) continue;
    if (!final.has(id)) problems.push(`M4 ${value} was sent as ${id}, and is nowhere`);
    if ((contentOf.get(id) ?? value) !== value) problems.push(`M4 ${id} was sent as ${value} and came as ${contentOf.get(id)}`);
    contentOf.set(id, value);
  }
  const idsOf = Map.groupBy(contentOf, ([, value]) => value);
  for (const [value, ids] of idsOf) if (ids.length > 1) problems.push(`E1 ${value} was sent once and came as ${ids.length} mails`);
  const unanswered = sent.filter(({ id }) => id === null).length;
  const known = sent.length - unanswered;
  if (mail.length < known || mail.length > known + unanswered)
    problems.push(`M4 E1 there are ${mail.length} mails after ${known} acknowledged and ${unanswered} unanswered ones`);

  const written = Map.groupBy(
    [...histories].filter(([key]) => key.startsWith("done.")).flatMap(([, entries]) => entries),
    (entry) => entry.value as string,
  );
  const acks = only(told, "acked");
  for (const { id, fence, outcome, value, with: key } of acks) {
    const state = final.get(id)?.state;
    if (outcome === "done" && state !== "acked") problems.push(`M1 ${id} was acked and is ${state}`);
    if (outcome === "done" && key && written.get(value)?.length !== 1)
      problems.push(`D2 ${id} was acked together with a write that happened ${written.get(value)?.length ?? 0} times`);
    for (const again of outcome === "done" ? received : [])
      if (again.id === id && again.fence > fence) problems.push(`M1 ${id} was acked with ${fence} and came again with ${again.fence}`);
  }
  for (const [value, entries] of written) {
    if (entries.length > 1) problems.push(`E1 the ack of ${value} has written ${entries.length} times`);
    const id = idsOf.get(value)?.[0]?.[0];
    if (id === undefined || final.get(id)?.state !== "acked") problems.push(`D2 ${value} was written with an ack that did not happen`);
  }
  const maybe = new Set(acks.filter(({ outcome }) => outcome !== "refused").map(({ id }) => id));
  for (const { id, state } of mail) if (state === "acked" && !maybe.has(id)) problems.push(`M1 ${id} is acked, and nobody did that`);
  const granted = Map.groupBy(received, ({ id, fence }) => `${id} ${fence}`);
  for (const [grant, times] of granted) if (times.length > 1) problems.push(`M1 ${grant} was handed out ${times.length} times`);
  return problems;
}
