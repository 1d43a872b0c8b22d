import type { Reply } from "./attempt.ts";

const WAIT_MS = 10_000;
/** A stream that is silent for so long has sent what it has. */
const SILENT_MS = 300;

/** Somebody with a token, and everything that comes back to it as text. */
export class Actor {
  readonly name: string;
  readonly #url: string;
  readonly #token: string;

  constructor(name: string, url: string, token: string) {
    this.name = name;
    this.#url = url;
    this.#token = token;
  }

  async call(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const head = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    const stream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    return {
      status: response.status,
      text: `${head}\n\n${stream && method === "GET" ? await untilSilent(response) : await response.text()}`,
    };
  }

  /** Of a call that must succeed: what the self-test itself rests on. */
  async must<Answer>(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const { status, text } = await this.call(method, path, body, headers);
    const answer = text.slice(text.indexOf("\n\n") + 2);
    if (status >= 400)
      throw new Error(`the self-test could not prepare itself: ${method} ${path} answered ${status}: ${answer.slice(0, 300)}`);
    return JSON.parse(answer) as Answer;
  }
}

async function untilSilent(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  const leave = (): void => void reader.cancel().catch(() => {});
  for (;;) {
    const timer = setTimeout(leave, SILENT_MS);
    const { done, value } = await reader.read();
    clearTimeout(timer);
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
}
