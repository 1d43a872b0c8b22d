import { z } from "zod";
import { type FileToSend, type MessageParts, placeInWords, sendMessageIn, whereToSend } from "../../../acts/send-message.ts";
import type { Address } from "../../../deciders/routing/address.ts";
import { sha256 } from "../../../kernel/canonical-json.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { Label } from "../../../kernel/label.ts";
import type { Redact } from "../../../kernel/redact.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { workspaceOf } from "../files/workspace-of.ts";
import { type CallContext, defineTool, type Tool } from "../tool.ts";
import { filesToSend, holdsSecret } from "./files-to-send.ts";

const MAX_CHARACTERS = 20_000;
const MAX_FILES = 10;

const parameters = z.strictObject({
  text: z
    .string()
    .max(MAX_CHARACTERS)
    .refine((value) => !value.includes("\0") && value.isWellFormed(), "expected well-formed text without NUL")
    .describe("What to say, in Markdown; may be empty where there are files"),
  files: z.array(z.string().min(1).max(4_096)).max(MAX_FILES).optional().describe("Paths in the workspace, to be sent after the words"),
  to: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe("Another conversation than this one: telegram:42, telegram/family:-1001#7 (platform/account:chat#topic)"),
});
type Arguments = z.output<typeof parameters>;

/** What was looked at and read for a call, until it is made. */
interface Ready {
  readonly address: Address;
  readonly files: readonly FileToSend[];
  readonly labels: readonly Label[];
}

/** `workspaces` undefined: files cannot be opened safely here. `redact`: knows the secrets of the config, which programs of agents have. */
export function messageSendTool(parts: MessageParts, workspaces: Workspaces | undefined, redact: Redact): Tool {
  const ready = new WeakMap<CallContext, Ready>();
  const readyFor = (context: CallContext): Ready => {
    const found = ready.get(context);
    if (!found) throw new Failure("internal.bug", "a message is sent that was not made ready");
    return found;
  };
  return defineTool({
    name: "message_send",
    description:
      "Send a message on a chat platform before your answer or besides it: to say what takes long, to send files of the workspace, to write in another conversation of yours. Your answer itself is sent without it. At most 20 in a turn.",
    parameters,
    effect: "keyed",
    // To where the answer goes anyway, it brings nothing that the answer would not.
    consequential: (_context, args) => (args as Arguments).to !== undefined,
    egress: true,
    prepare: async ({ text, files: paths = [], to }, context) => {
      if (text.trim() === "" && paths.length === 0) throw new Failure("tool.bad_arguments", "message_send: there is nothing to send");
      const { agent, run } = context;
      const address = await whereToSend(parts, parts.store.read, { agent: agent.id, address: run.address }, to);
      if (paths.length > 0 && !workspaces)
        throw new Failure("tool.unavailable", "files cannot be opened safely on this system, so that none can be sent");
      const files = workspaces ? await filesToSend(workspaceOf(workspaces, context), paths) : [];
      let labels: readonly Label[] = [];
      for (const file of files) if (await holdsSecret(file, redact)) labels = ["secret"];
      ready.set(context, { address, files, labels });
      return labels;
    },
    boundTo: async (_args, context) => {
      const { address, files } = readyFor(context);
      return { to: placeInWords(address), files: files.map(({ name, bytes }) => ({ name, bytes: bytes.length, sha256: sha256(bytes) })) };
    },
    runIn: async (tx, { text }, context) => {
      const { address, files, labels } = readyFor(context);
      await sendMessageIn(parts, tx, { runId: context.run.id, tool: "message_send", address, text, files }, context.cause);
      const to = placeInWords(address);
      const names = files.map(({ name }) => name);
      return { output: { on_its_way_to: to, ...(names.length > 0 ? { files: names } : {}) }, labels, told: { to, files: names } };
    },
  });
}
