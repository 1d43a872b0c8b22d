import { MAX_MESSAGES } from "../../../contract/openai.ts";
import type { Image, ModelCall, ModelCallResult, ModelMessage } from "../../../kernel/model.ts";
import { badRequest } from "./openai-error.ts";

/** Of a conversation that is sent piece by piece: what a request may have. */
const MAX_CHARACTERS = 8 * 1024 * 1024;

const DATA_URL = /^data:(image\/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/]+={0,2})$/;

export interface BroughtConversation {
  readonly instructions: string | null;
  readonly messages: readonly ModelMessage[];
  /** What the person said last. */
  readonly input: string;
}

/** A conversation of somebody else's making, one message after another, in our form. Refuses what no model could follow. */
export class Conversation {
  readonly #instructions: string[] = [];
  readonly #messages: ModelMessage[] = [];
  /** Calls that wait for their results. */
  readonly #open = new Map<string, ModelCall>();
  readonly #field: string;
  #grows = false;

  /** `field`: where its messages stand in what was sent, for refusals. */
  constructor(field: string) {
    this.#field = field;
  }

  /** What was said before, in our form already. It was bounded when it came, and so must be what grows from it. */
  goesOnFrom(messages: readonly ModelMessage[]): void {
    this.#grows = true;
    this.#messages.push(...messages);
    const last = messages.at(-1);
    if (last?.role === "assistant") for (const call of last.calls ?? []) this.#open.set(call.id, call);
  }

  instruct(text: string): void {
    if (text !== "") this.#instructions.push(text);
  }

  user(text: string, images: readonly Image[]): void {
    this.#refuseOpen();
    this.#messages.push({ role: "user", text: clean(text), ...(images.length === 0 ? {} : { images }) });
  }

  assistant(text: string, calls: readonly ModelCall[]): void {
    this.#refuseOpen();
    this.#messages.push({ role: "assistant", text: clean(text), ...(calls.length === 0 ? {} : { calls }) });
    for (const call of calls) this.#await(call);
  }

  /** One more call of the answer before it. */
  call(call: ModelCall): void {
    const last = this.#messages.at(-1);
    if (last?.role === "assistant") {
      this.#messages[this.#messages.length - 1] = { ...last, calls: [...(last.calls ?? []), call] };
      this.#await(call);
    } else this.assistant("", [call]);
  }

  result(id: string, text: string, where: string): void {
    const call = this.#open.get(id);
    if (!call) throw badRequest(where, `no call before it has the id "${id}" and waits for a result`);
    this.#open.delete(id);
    const result: ModelCallResult = { id, tool: call.tool, text: clean(text), failed: false };
    const last = this.#messages.at(-1);
    if (last?.role !== "tool") this.#messages.push({ role: "tool", results: [result] });
    else this.#messages[this.#messages.length - 1] = { role: "tool", results: [...last.results, result] };
  }

  whole(): BroughtConversation {
    this.#refuseOpen();
    if (this.#grows) this.#refuseGrown();
    const last = this.#messages.at(-1);
    if (last?.role !== "user" && last?.role !== "tool")
      throw badRequest(this.#field, "the last message must be the user's, or a result of a tool");
    const said = this.#messages.findLast(({ role }) => role === "user");
    return {
      instructions: this.#instructions.length === 0 ? null : clean(this.#instructions.join("\n\n")),
      messages: this.#messages,
      input: said?.role === "user" ? said.text : "",
    };
  }

  #await(call: ModelCall): void {
    if (this.#open.has(call.id)) throw badRequest(this.#field, `two calls of one answer have the id "${call.id}"`);
    this.#open.set(call.id, call);
  }

  #refuseGrown(): void {
    const tooMuch = (what: string): Error => badRequest("previous_response_id", `the conversation has grown to more than ${what}`);
    if (this.#messages.length > MAX_MESSAGES) throw tooMuch(`${MAX_MESSAGES} messages`);
    if (JSON.stringify(this.#messages).length > MAX_CHARACTERS) throw tooMuch(`${MAX_CHARACTERS} characters`);
  }

  #refuseOpen(): void {
    if (this.#open.size === 0) return;
    const ids = [...this.#open.keys()].slice(0, 5).join(", ");
    throw badRequest(this.#field, `every call of a tool must be followed by its result; these have none: ${ids}`);
  }
}

export function imageOf(url: string, where: string): Image {
  const [, mediaType, data] = DATA_URL.exec(url) ?? [];
  if (mediaType !== undefined && data !== undefined) return { mediaType, data };
  if (url.startsWith("data:")) throw badRequest(where, "expected a PNG, JPEG, GIF or WebP as data:image/…;base64,…");
  throw badRequest(where, "images are taken as data: URLs only: the gateway fetches nothing for whoever asks");
}

/** What both databases can hold. */
function clean(text: string): string {
  return text.replaceAll("\0", "").toWellFormed();
}
