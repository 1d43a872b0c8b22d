import type { ChatFile, ChatPlace, OutboundFile } from "../../../kernel/channel.ts";
import { SendTrouble } from "../../../kernel/channel.ts";
import { capped, unanswered } from "../http-calls.ts";
import type { SlackApi } from "./slack-api.ts";
import { sendTroubleOf } from "./slack-trouble.ts";

/** Until the last of the three steps nobody sees anything: before it nothing is ever unclear. */
export async function uploadFile(api: SlackApi, place: ChatPlace, file: OutboundFile, signal: AbortSignal): Promise<string> {
  const id = await invisibly(async () => {
    const asked = await api.call(signal, ({ files }) => files.getUploadURLExternal({ filename: file.name, length: file.data.length }));
    if (!asked.file_id) throw new SendTrouble("later", "Slack gives no place for the file");
    const response = await api.put(asked.upload_url, file.data, signal);
    await response.body?.cancel();
    if (!response.ok) throw new SendTrouble("later", `Slack does not take the file: ${response.status}`);
    return asked.file_id;
  });
  const { chat, topic } = place;
  const shared = { files: [{ id, title: file.name }] as [{ id: string; title: string }], channel_id: chat };
  await api.call(signal, ({ files }) => files.completeUploadExternal(topic === null ? shared : { ...shared, thread_ts: topic }));
  return id;
}

async function invisibly<Value>(run: () => Promise<Value>): Promise<Value> {
  try {
    return await run();
  } catch (error) {
    const trouble = error instanceof SendTrouble ? error : unanswered(error, "Slack");
    throw trouble.kind === "unclear" ? new SendTrouble("later", trouble.message, { cause: error }) : trouble;
  }
}

export async function downloadFile(
  api: SlackApi,
  { ref }: ChatFile,
  maxBytes: number,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const { file } = await api.call(signal, ({ files }) => files.info({ file: ref }));
  if (file?.size !== undefined && file.size > maxBytes) throw new SendTrouble("refused", `the file has ${file.size} bytes`);
  const response = await api.open(file?.url_private_download ?? file?.url_private, signal).catch((error: unknown) => {
    throw sendTroubleOf(error instanceof SendTrouble ? error : unanswered(error, "Slack"));
  });
  const isPage = response.headers.get("content-type")?.startsWith("text/html") && file?.mimetype !== "text/html";
  if (!response.ok || isPage || !response.body) {
    await response.body?.cancel();
    // Whoever lacks the right is shown the page on which people log in.
    if (isPage) throw new SendTrouble("refused", "missing_scope (files:read): add it to the app, and install the app again");
    throw new SendTrouble(response.status >= 500 ? "later" : "refused", `Slack does not give the file: ${response.status}`);
  }
  return capped(response.body as ReadableStream<Uint8Array>, maxBytes);
}
