import { z } from "zod";
import { sendMail } from "../../acts/send-mail.ts";
import { takeMail } from "../../acts/take-mail.ts";
import { mailNack, mailReceive, newMail } from "../../contract/mail.ts";
import { identifier, text } from "../../contract/text.ts";
import { Failure } from "../../kernel/failure.ts";
import { check, inWords, type Tool, type ToolCall, tool } from "./tool.ts";

const REMEMBERED = 10_000;
const IN_WORDS = {
  started: "which has started a turn",
  waiting: "which a turn that waits already will open",
  nobody: "which wakes nobody: no agent of this house receives it",
  limited: "which is read later: too many turns were started by mail",
};

/** Fences of mail that was handed out here: a model that acks by the id alone means what it has just read. */
class HandedOut {
  readonly #fences = new Map<string, number>();

  note({ caller }: ToolCall, id: string, fence: number): void {
    this.#fences.set(`${caller.name}/${id}`, fence);
    if (this.#fences.size > REMEMBERED) this.#fences.delete(this.#fences.keys().next().value as string);
  }

  fenceOf({ caller }: ToolCall, id: string, given: number | undefined): number {
    const fence = given ?? this.#fences.get(`${caller.name}/${id}`);
    if (fence === undefined) throw new Failure("mail.stale", "this mail was not read here; read it again, or give its fence");
    return fence;
  }
}

const id = identifier.describe("The mail's id, from mail_read");
const fence = z.int().positive().optional().describe("The fence from mail_read");

export function mailTools(): readonly Tool[] {
  const handedOut = new HandedOut();
  return [
    tool({
      name: "mail_send",
      description: "Write to another agent by its name, or to everybody with a role (role:<role>): questions, hand-overs, warnings.",
      input: z.strictObject({
        to: z.string().min(1).max(70).describe("A name as whoami and claims show it, or role:<role>"),
        type: text(128).default("note").describe("What kind of mail, in a word: note, question, handover"),
        content: z.unknown().describe("Text or any JSON"),
        priority: z.enum(["normal", "urgent"]).default("normal"),
        conversation: identifier.optional().describe("Mail of one conversation arrives in order"),
        readers: z.array(z.string()).max(50).optional().describe("Who else may read it"),
        wake: z.boolean().optional().describe("Start a turn of the agent that receives it, instead of waiting for its next one"),
      }),
      changes: true,
      call: async (parts, { caller }, args) => {
        const sent = await sendMail(parts, caller, check(newMail, { ...args, content: args.content ?? null }));
        const woken = sent.woken === undefined ? "" : `, ${IN_WORDS[sent.woken]}`;
        return { text: `sent to ${args.to} as ${sent.id}${woken}`, data: { ...sent } };
      },
    }),
    tool({
      name: "mail_read",
      description:
        "Take your mail. Do what it asks, then mail_ack each one: what you do not ack in time comes again. Look here between two pieces of work.",
      input: z.strictObject({
        max: z.int().min(1).max(100).default(10),
        visibility_s: z.int().positive().max(86_400).default(300).describe("How long you need before it comes again"),
        wait_s: z.int().min(0).max(60).default(0).describe("Wait so long for mail when there is none"),
      }),
      changes: true,
      call: async (parts, call, { max, visibility_s, wait_s }) => {
        const request = check(mailReceive, { max, visibility_ms: visibility_s * 1_000, wait_ms: wait_s * 1_000 });
        const mail = await takeMail(parts, call.caller, request, { signal: call.signal });
        for (const one of mail) handedOut.note(call, one.id, one.fence);
        const lines = mail.map(
          (one) =>
            `${one.id} (fence ${one.fence}) from ${one.from}, ${inWords(one.at)}, ${one.priority} ${one.type}${one.label === "external" ? " (external)" : ""}:\n${JSON.stringify(one.content)}`,
        );
        return { text: lines.join("\n") || "no mail", data: { mail } };
      },
    }),
    tool({
      name: "mail_ack",
      description: "Say that you have done what a mail asked for, so that it does not come again.",
      input: z.strictObject({ id, fence }),
      changes: true,
      call: async ({ mailbox }, call, args) => {
        await mailbox.ack(call.caller, args.id, handedOut.fenceOf(call, args.id, args.fence));
        return { text: `${args.id} is done with`, data: { id: args.id, state: "acked" } };
      },
    }),
    tool({
      name: "mail_nack",
      description: "Give a mail back because you cannot deal with it now; it comes again after the delay.",
      input: z.strictObject({ id, fence, delay_s: z.int().min(0).max(86_400).default(0) }),
      changes: true,
      call: async ({ mailbox }, call, args) => {
        const { delay_ms } = check(mailNack, { fence: handedOut.fenceOf(call, args.id, args.fence), delay_ms: args.delay_s * 1_000 });
        await mailbox.nack(call.caller, args.id, handedOut.fenceOf(call, args.id, args.fence), delay_ms);
        return { text: `${args.id} is given back`, data: { id: args.id, state: "pending" } };
      },
    }),
  ];
}
