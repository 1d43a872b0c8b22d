import { z } from "zod";
import { type MailParts, sendMailIn } from "../../../acts/send-mail.ts";
import { type Mail, newMail, type ReceivedMail } from "../../../contract/mail.ts";
import { identifier, text } from "../../../contract/text.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { Label } from "../../../kernel/label.ts";
import { defineTool, type Tool, type ToolOutcome } from "../tool.ts";

const { priority, conversation, readers, wake } = newMail.shape;
const VISIBLE_S = 300;
/** What a model can be shown at once of one mailbox. */
const READ_BYTES = 65_536;

export function mailTools(parts: MailParts): Tool[] {
  const { mailbox } = parts;
  return [
    defineTool({
      name: "mail_send",
      description: "Write to another agent by its name, or to everybody with a role (role:<role>): questions, hand-overs, warnings.",
      parameters: z.strictObject({
        to: newMail.shape.to.describe("A name as agent_list and claims show it, or role:<role>"),
        type: text(128).default("note").describe("What kind of mail, in a word: note, question, handover"),
        content: z
          .unknown()
          .refine((content) => content !== undefined, "expected a value")
          .describe("Text or any JSON"),
        priority: priority.describe("urgent: handed out first, also to an agent in the middle of a turn"),
        conversation: conversation.describe("Mail of one conversation arrives in order"),
        readers: readers.describe("Who else may read it"),
        wake: wake.describe("Start a turn of the agent that receives it, instead of waiting for its next one"),
      }),
      effect: "keyed",
      egress: true,
      runIn: async (tx, draft, { caller, labels }) => ({
        output: await sendMailIn(parts, tx, caller, newMail.parse(draft), labels.has("external")),
      }),
    }),
    defineTool({
      name: "mail_read",
      polls: true,
      description:
        "Take your mail; what has come before your turn began was shown to you at its beginning. Do what is to be done, then mail_ack each one: what you do not ack in time comes again. With an id: look at one mail that you were shown or have sent, all of it.",
      parameters: z.strictObject({
        max: z.int().min(1).max(100).default(10),
        visibility_s: z.int().positive().max(86_400).default(VISIBLE_S).describe("How long you need before it comes again"),
        id: identifier.optional().describe("Only look at this one"),
      }),
      effect: "keyed",
      runIn: async (tx, { max, visibility_s, id }, { caller }) => {
        if (id !== undefined) return lookedAt(await mailbox.read(caller, id, tx));
        const asked = { max, maxBytes: READ_BYTES, visibility_ms: visibility_s * 1_000 };
        const mail = await mailbox.receiveIn(tx, caller, asked);
        return { output: { mail: mail.map(received) }, labels: labelsOf(mail) };
      },
    }),
    defineTool({
      name: "mail_ack",
      description: "Say that you have done what a mail asked for, so that it does not come again.",
      parameters: z.strictObject({
        id: identifier.describe("The mail's id, from mail_read"),
        fence: z.int().positive().optional().describe("The fence from mail_read; without it the one that is yours now"),
      }),
      effect: "keyed",
      runIn: async (tx, { id, fence }, { caller }) => {
        const held = fence ?? (await mailbox.leaseIn(tx, caller, id));
        if (held === undefined) throw new Failure("mail.stale", "you have not read this mail, or too long ago; read it again");
        await mailbox.ackIn(tx, caller, id, held);
        return { output: { id, state: "acked" } };
      },
    }),
  ];
}

function lookedAt(mail: Mail): ToolOutcome {
  const { from, to, type, content, at, state, label, attempts } = mail;
  return {
    output: { id: mail.id, from, to, type, label, at: new Date(at).toISOString(), state, attempts, content },
    labels: labelsOf([mail]),
  };
}

function received({ id, fence, from, to, type, priority: urgency, label, conversation: thread, at, attempt, content }: ReceivedMail) {
  return { id, fence, from, to, type, priority: urgency, label, conversation: thread, at: new Date(at).toISOString(), attempt, content };
}

function labelsOf(mail: readonly Pick<ReceivedMail, "label">[]): Label[] {
  return mail.some(({ label }) => label === "external") ? ["external"] : [];
}
