import type { ResponsesRequest } from "../../../contract/openai.ts";
import type { Run } from "../../../contract/wire.ts";
import type { ModelCall } from "../../../kernel/model.ts";
import type { Send } from "../route.ts";
import { failureOf, openAiError } from "./openai-error.ts";
import { callItem, messageItem, responseOf, textPart } from "./responses-answer.ts";
import type { Spoken } from "./spoken.ts";

type Json = Record<string, unknown>;

/** The events of one response, in the order and with the numbers that clients expect. */
export class ResponseEvents {
  readonly #run: Run;
  readonly #sent: ResponsesRequest;
  readonly #send: Send;
  readonly #output: Json[] = [];
  #number = 0;
  /** The message that is being said. */
  #text: string | null = null;

  constructor(run: Run, sent: ResponsesRequest, send: Send) {
    this.#run = run;
    this.#sent = sent;
    this.#send = send;
  }

  async begin(): Promise<void> {
    const response = responseOf(this.#run, this.#sent, "in_progress", []);
    await this.#tell("response.created", { response });
    await this.#tell("response.in_progress", { response });
  }

  async say(words: ReturnType<Spoken["hear"]>): Promise<void> {
    if (!words) return;
    if (words.fresh) await this.#endMessage("completed");
    if (this.#text === null) {
      this.#text = "";
      const item = messageItem(this.#run, this.#place, "in_progress", null);
      await this.#tell("response.output_item.added", { output_index: this.#place, item });
      await this.#tell("response.content_part.added", { ...this.#part(), part: textPart("") });
    }
    this.#text += words.text;
    await this.#tell("response.output_text.delta", { ...this.#part(), delta: words.text, logprobs: [] });
  }

  /** The run is over. `spoiled`: what was said is not the answer, which is then said as a message of its own. */
  async end(run: Run, cut: boolean, spoiled: boolean): Promise<void> {
    if (run.status !== "completed") {
      const { error } = openAiError(failureOf(run.error)).body;
      const response = responseOf(run, this.#sent, "failed", this.#output);
      await this.#tell("response.failed", { response: { ...response, error: { code: "server_error", message: error.message } } });
      return;
    }
    const { text, calls = [] } = run.reply ?? { text: "" };
    if (spoiled) {
      await this.#endMessage("incomplete");
      await this.say({ text, fresh: false });
    } else if (this.#output.length === 0 && this.#text === null && calls.length === 0) await this.say({ text, fresh: false });
    await this.#endMessage(cut ? "incomplete" : "completed");
    for (const call of calls) await this.#call(call);
    const response = responseOf(run, this.#sent, cut ? "incomplete" : "completed", this.#output, cut);
    await this.#tell(cut ? "response.incomplete" : "response.completed", { response });
  }

  async #endMessage(status: "completed" | "incomplete"): Promise<void> {
    const text = this.#text;
    if (text === null) return;
    const item = messageItem(this.#run, this.#place, status, text);
    await this.#tell("response.output_text.done", { ...this.#part(), text, logprobs: [] });
    await this.#tell("response.content_part.done", { ...this.#part(), part: textPart(text) });
    await this.#tell("response.output_item.done", { output_index: this.#place, item });
    this.#output.push(item);
    this.#text = null;
  }

  async #call(call: ModelCall): Promise<void> {
    const place = this.#place;
    const item = callItem(this.#run, place, call);
    const where = { item_id: item.id, output_index: place };
    await this.#tell("response.output_item.added", { output_index: place, item: callItem(this.#run, place, call, true) });
    await this.#tell("response.function_call_arguments.delta", { ...where, delta: call.args });
    await this.#tell("response.function_call_arguments.done", { ...where, name: call.tool, arguments: call.args });
    await this.#tell("response.output_item.done", { output_index: place, item });
    this.#output.push(item);
  }

  get #place(): number {
    return this.#output.length;
  }

  #part(): Json {
    return { item_id: `msg_${this.#run.id}_${this.#place}`, output_index: this.#place, content_index: 0 };
  }

  async #tell(type: string, data: Json): Promise<void> {
    await this.#send({ event: type, data: { type, sequence_number: this.#number++, ...data } });
  }
}
