import type { IncomingMessage, ServerResponse } from "node:http";

/** What the stand-in keeps of files that were brought to it, by people or by the bot. */
export interface KeptMedia {
  readonly name: string;
  readonly mediaType: string;
  readonly data: Uint8Array;
}

const MEGABYTE = 1_048_576;
/** As Meta lists them: the type of a message, and what may be sent with it. */
const TAKEN: Readonly<Record<string, { readonly types: RegExp; readonly maxBytes: number }>> = {
  image: { types: /^image\/(jpeg|png)$/, maxBytes: 5 * MEGABYTE },
  audio: { types: /^audio\/(aac|amr|mpeg|mp4|ogg)$/, maxBytes: 16 * MEGABYTE },
  video: { types: /^video\/(mp4|3gpp)$/, maxBytes: 16 * MEGABYTE },
  document: { types: /^(text\/plain|application\/(pdf|msword|vnd\.(ms-|openxmlformats).+))$/, maxBytes: 100 * MEGABYTE },
};

/** Why Meta would refuse it; undefined: it takes it. */
export function mediaProblem(type: string, { mediaType, data }: KeptMedia): string | undefined {
  const taken = TAKEN[type];
  if (!taken?.types.test(mediaType)) return `Param file must be a file with one of the supported types, not ${mediaType}`;
  return data.length > taken.maxBytes ? "Media file size too big" : undefined;
}

export function isUploadable(media: KeptMedia): boolean {
  return Object.keys(TAKEN).some((type) => mediaProblem(type, media) === undefined);
}

export async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export function sendJson(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { "content-type": "application/json; charset=UTF-8" }).end(JSON.stringify(body));
}

/** In the form in which Graph refuses anything. */
export function refuse(outgoing: ServerResponse, status: number, code: number, message: string, details?: string): void {
  const more = details === undefined ? {} : { error_data: { messaging_product: "whatsapp", details } };
  sendJson(outgoing, status, {
    error: { message: `(#${code}) ${message}`, type: "OAuthException", code, ...more, fbtrace_id: "Az8or2yhqkZfEZ" },
  });
}

/** As a person reads it. */
export function withoutMarkup(text: string): string {
  return text.replaceAll(/```\n?([\s\S]*?)\n?```/g, "$1").replaceAll(/(^|[\s(])([*_~`])(\S(?:.*?\S)?)\2(?=$|[\s).,;:!?])/gm, "$1$3");
}
