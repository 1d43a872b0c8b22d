import { sha256 } from "../../kernel/canonical-json.ts";
import type { Label } from "../../kernel/label.ts";
import type { ToolOffer } from "../../kernel/model.ts";
import { writtenOffers } from "../../kernel/tool-offer.ts";
import type { Reads, Tx } from "../../store/engine.ts";

/** One part of what the model is told, by name: `personality`, `skills`, `memory`, `mail`. */
export interface ContextPart {
  readonly name: string;
  readonly text: string;
  /** Told right before the message: before the conversation it would be another one every time, and nothing after it could be kept by a provider. */
  readonly fleeting?: boolean;
  /** What the turn carries from it. */
  readonly labels?: readonly Label[];
}

/** An image that came with the message, where it lies in the workspace, and what it was when the model was first told of it. */
export interface ToldImage {
  readonly path: string;
  readonly mediaType: string;
  readonly hash: string;
}

/** A summary, by the step that made it. */
export interface SummaryPlace {
  readonly run: string;
  readonly step: number;
}

/** What the model is told beside the conversation. Kept when the turn begins: whoever takes the turn over tells it the same. */
export interface StoredContext {
  /** The same from turn to turn. */
  readonly system: readonly ContextPart[];
  readonly tools: readonly ToolOffer[];
  /** What may be another in the next turn. */
  readonly recalled: readonly ContextPart[];
  /** Mail that opened the turn, to be acked with its commit. */
  readonly mail: readonly { readonly id: string; readonly fence: number }[];
  /** Shown with the message. */
  readonly images?: readonly ToldImage[];
  /** What the turn carries from its beginning on. */
  readonly labels?: readonly Label[];
  /** How much of the conversation before it is told: entries after this position, */
  readonly after: number;
  /** and up to this one. */
  readonly upto?: number;
  /** What stands in place of the entries before. */
  readonly summary?: SummaryPlace | null;
  /** There were entries in between that are not told. */
  readonly omitted?: boolean;
  /** Somebody wants the conversation summarised. */
  readonly compact?: boolean;
  /** To be made anew by whoever takes the turn up next. The mail that opened the turn stays with it. */
  readonly stale?: boolean;
}

/** As it is stored: of the tools only the hash, under which they stand once for all turns. */
type StoredBody = Omit<StoredContext, "tools"> & { readonly tools: string };

export async function keepContext(tx: Tx, runId: string, context: StoredContext): Promise<void> {
  const written = writtenOffers(context.tools);
  const tools = sha256(written);
  const known = await tx.get`select 1 from tool_offers where hash = ${tools}`;
  if (!known) await tx.run`insert into tool_offers (hash, body) values (${tools}, ${written}) on conflict (hash) do nothing`;
  const body: StoredBody = { ...context, tools };
  await tx.run`insert into run_contexts (run_id, body, labels) values (${runId}, ${JSON.stringify(body)}, ${(context.labels ?? []).join(" ")})
    on conflict (run_id) do update set body = excluded.body, labels = excluded.labels`;
}

export async function readContext(reads: Reads, runId: string): Promise<StoredContext | undefined> {
  const row = await reads.get<{ body: string }>`select body from run_contexts where run_id = ${runId}`;
  if (!row) return undefined;
  const body = JSON.parse(row.body) as StoredBody;
  const offers = await reads.get<{ body: string }>`select body from tool_offers where hash = ${body.tools}`;
  return { ...body, tools: offers ? (JSON.parse(offers.body) as ToolOffer[]) : [] };
}

/** The turn is to be told what holds now. What it has done stays. */
export async function forgetContext(tx: Tx, runId: string): Promise<void> {
  const context = await readContext(tx, runId);
  if (context) await keepContext(tx, runId, { ...context, stale: true });
}
