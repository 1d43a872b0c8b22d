import { ClientError } from "../client/client-error.ts";
import { MailClient } from "../client/mail.ts";
import type { Mail, MailFilter, ReceivedMail } from "../contract/mail.ts";
import { connectRunning } from "./connect.ts";
import { moment, span, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

const ID_LENGTH = 20;

interface SendOptions extends GlobalOptions {
  readonly data?: boolean;
  readonly type: string;
  readonly urgent?: boolean;
  readonly conversation?: string;
  readonly reader?: string[];
  readonly wake?: boolean;
  readonly expires?: number;
}

export async function sendMail(to: string, content: string, options: SendOptions): Promise<number> {
  const draft = { to, type: options.type, content: options.data ? parsed(content) : content };
  const mail = await clientFor(options);
  const sent = await mail.send({
    ...draft,
    ...(options.urgent ? { priority: "urgent" } : {}),
    ...(options.conversation === undefined ? {} : { conversation: options.conversation }),
    ...(options.reader === undefined ? {} : { readers: options.reader }),
    ...(options.expires === undefined ? {} : { expires_ms: options.expires }),
    ...(options.wake ? { wake: true } : {}),
  });
  print(options.json ? JSON.stringify(sent) : sent.id);
  return 0;
}

interface ReadOptions extends GlobalOptions {
  readonly max?: number;
  readonly visibility?: number;
  readonly wait?: number;
  readonly ack?: boolean;
}

export async function readMail(options: ReadOptions): Promise<number> {
  const mail = await clientFor(options);
  const received = await mail.receive({
    ...(options.max === undefined ? {} : { max: options.max }),
    ...(options.visibility === undefined ? {} : { visibility_ms: options.visibility }),
    ...(options.wait === undefined ? {} : { wait_ms: options.wait }),
  });
  if (options.json) print(JSON.stringify({ mail: received }));
  else if (received.length === 0) say("no mail");
  else for (const letter of received) print(letterText(letter));
  if (options.ack) for (const { id, fence } of received) await mail.ack(id, fence);
  else if (received.length > 0 && !options.json) say("ack each with: guildhall mail ack <id> <fence>");
  return 0;
}

export async function ackMail(id: string, fence: number, options: GlobalOptions): Promise<number> {
  const mail = await clientFor(options);
  const settled = await mail.ack(await wholeId(mail, id), fence);
  print(options.json ? JSON.stringify(settled) : `${settled.id} is acked`);
  return 0;
}

export async function nackMail(id: string, fence: number, options: GlobalOptions & { readonly delay?: number }): Promise<number> {
  const mail = await clientFor(options);
  const settled = await mail.nack(await wholeId(mail, id), fence, options.delay ?? 0);
  const fate = settled.state === "dead" ? "is dead: it was given back too often" : "will come again";
  print(options.json ? JSON.stringify(settled) : `${settled.id} ${fate}`);
  return 0;
}

export async function listMail(options: GlobalOptions & Pick<MailFilter, "box" | "state" | "limit">): Promise<number> {
  const mail = await clientFor(options);
  const found = await mail.list({ box: options.box, state: options.state, limit: options.limit });
  if (options.json) print(JSON.stringify(found));
  else if (found.mail.length === 0) say("no mail");
  else print(table([["id", "from", "to", "type", "sent", "state", "after", ""], ...found.mail.map(rowOf)]));
  return 0;
}

export async function showMail(id: string, options: GlobalOptions): Promise<number> {
  const mail = await clientFor(options);
  const found = await mail.read(await wholeId(mail, id));
  print(
    options.json
      ? JSON.stringify(found)
      : `${letterText(found)}\n${found.state}, sent ${moment(found.at)}, received after ${span(found.delayMs)}`,
  );
  return 0;
}

function rowOf(mail: Omit<Mail, "content">): string[] {
  const tries = mail.attempts > 1 ? `${mail.attempts} tries` : "";
  const urgent = mail.priority === "urgent" ? "urgent" : "";
  const from = [mail.id, mail.from, mail.to, harmless(mail.type)];
  return [...from, moment(mail.at), mail.state, span(mail.delayMs), [urgent, tries].filter((word) => word !== "").join(", ")];
}

function letterText(mail: ReceivedMail | Mail): string {
  const about = [mail.priority === "urgent" ? "urgent" : "", mail.conversation === null ? "" : `conversation ${mail.conversation}`];
  const lease = "fence" in mail ? [`fence ${mail.fence}`, mail.attempt > 1 ? `try ${mail.attempt}` : ""] : [];
  const head = [mail.id, ...lease, ...about].filter((word) => word !== "").join(" · ");
  const content = typeof mail.content === "string" ? mail.content : JSON.stringify(mail.content, null, 2);
  return `${bold(`${mail.from} → ${mail.to}: ${harmless(mail.type)}`)}\n${harmless(head)}\n${harmless(content)}\n`;
}

/** The one mail one may see whose id begins so. */
async function wholeId(mail: MailClient, id: string): Promise<string> {
  if (id.length >= ID_LENGTH) return id;
  const boxes = await Promise.all((["in", "sent", "readable"] as const).map((box) => mail.list({ box, limit: 500 })));
  const ids = new Set(boxes.flatMap((box) => box.mail.map((found) => found.id)).filter((found) => found.startsWith(id)));
  const [only, another] = ids;
  if (only === undefined) throw new ClientError("request.not_found", `there is no mail whose id begins with "${id}"`);
  if (another !== undefined) throw new ClientError("usage.wrong", `several mails begin with "${id}"; write more of it`);
  return only;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ClientError("usage.wrong", "--data: the content is not JSON", { cause: error });
  }
}

async function clientFor(options: GlobalOptions): Promise<MailClient> {
  return new MailClient(await connectRunning(options));
}
