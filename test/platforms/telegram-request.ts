import type { IncomingMessage } from "node:http";

export interface SentFile {
  readonly name: string;
  readonly data: Uint8Array;
}

/** What a call of the Bot API brings: its fields as they are in JSON, and its files by the names under which fields speak of them. */
export interface Call {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the client under test sends; it is checked where it is used
  readonly fields: Record<string, any>;
  readonly files: ReadonlyMap<string, SentFile>;
}

/** Undefined: it cannot be read. */
export async function readCall(request: IncomingMessage, method: string): Promise<Call | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const type = request.headers["content-type"] ?? "";
  const boundary = /^multipart\/form-data;\s*boundary="?([^";]+)"?/.exec(type)?.[1];
  if (boundary !== undefined) return readForm(method, body, boundary);
  if (body.length === 0) return { method, fields: {}, files: new Map() };
  if (!type.startsWith("application/json")) return undefined;
  try {
    return { method, fields: JSON.parse(body.toString()), files: new Map() };
  } catch {
    return undefined;
  }
}

function readForm(method: string, body: Buffer, boundary: string): Call | undefined {
  const fields: Record<string, unknown> = {};
  const files = new Map<string, SentFile>();
  const mark = `--${boundary}`;
  let from = body.indexOf(mark);
  if (from !== 0) return undefined;
  while (body.subarray(from + mark.length, from + mark.length + 2).toString() !== "--") {
    const next = body.indexOf(`\r\n${mark}`, from);
    if (next === -1) return undefined;
    const part = body.subarray(from + mark.length + 2, next);
    const end = part.indexOf("\r\n\r\n");
    const head = part.subarray(0, end).toString();
    const data = part.subarray(end + 4);
    const name = /name="([^"]+)"/.exec(head)?.[1];
    if (end === -1 || name === undefined) return undefined;
    const filename = /filename="?([^"\r\n;]+)"?/.exec(head)?.[1];
    if (filename === undefined) fields[name] = fieldOf(data.toString());
    else files.set(name, { name: filename, data: new Uint8Array(data) });
    from = next + 2;
  }
  return { method, fields, files };
}

function fieldOf(text: string): unknown {
  if (!/^([[{]|-?\d+$|true$|false$)/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
