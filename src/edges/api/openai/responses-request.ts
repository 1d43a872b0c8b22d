import { type InputItem, type ResponsesRequest, responsesRequest } from "../../../contract/openai.ts";
import type { Image, ModelMessage, ModelSettings, ToolOffer } from "../../../kernel/model.ts";
import { Conversation, imageOf } from "./conversation.ts";
import { badRequest } from "./openai-error.ts";
import { type Asked, given, jsonOf, read, refuseTwins, refuseUnknownChoice } from "./read-request.ts";

/** Parts of answers that other servers gave and that tell a model nothing. */
const PASSED_OVER = ["reasoning", "item_reference"];

export interface AskedByResponses extends Asked {
  readonly sent: ResponsesRequest;
}

/** What was said up to a response, itself included. */
export type Before = (responseId: string, agent: string) => Promise<readonly ModelMessage[]>;

/** What is asked for by `POST /v1/responses`. */
export async function readResponsesRequest(body: unknown, before: Before): Promise<AskedByResponses> {
  const sent = read(responsesRequest, body);
  refuseWhatWeCannot(sent);
  const conversation = new Conversation("input");
  if (sent.instructions) conversation.instruct(sent.instructions);
  if (sent.previous_response_id) conversation.goesOnFrom(await before(sent.previous_response_id, sent.model));
  if (typeof sent.input === "string") conversation.user(sent.input, []);
  else for (const [index, item] of sent.input.entries()) add(conversation, item, `input[${index}]`);
  const tools = (sent.tools ?? []).map((tool, index): ToolOffer => {
    if (tool.type !== "function" || !("name" in tool))
      throw badRequest(`tools[${index}].type`, `tools of the type "${tool.type}" are not taken`);
    const { name, description, parameters } = tool as {
      name: string;
      description?: string | null;
      parameters?: ToolOffer["parameters"] | null;
    };
    return { name, description: description ?? "", parameters: parameters ?? { type: "object", properties: {} } };
  });
  const settings = settingsOf(sent);
  refuseTwins(tools);
  refuseUnknownChoice(settings.toolChoice, tools);
  return { agent: sent.model, conversation: conversation.whole(), tools, settings, stream: sent.stream ?? false, sent };
}

function refuseWhatWeCannot({ background, conversation, prompt }: ResponsesRequest): void {
  if (background) throw badRequest("background", "send it without; the run goes on also when nobody waits for it");
  if (conversation !== undefined && conversation !== null)
    throw badRequest("conversation", "name a session with the header X-Guildhall-Session, or use previous_response_id");
  if (prompt !== undefined && prompt !== null) throw badRequest("prompt", "stored prompts are not known here");
}

function add(conversation: Conversation, item: InputItem, where: string): void {
  if (item.type === "function_call" && "name" in item) {
    const { call_id: id, name, arguments: args } = item as { call_id: string; name: string; arguments: string };
    conversation.call({ id, tool: name, args });
  } else if (item.type === "function_call_output" && "output" in item) {
    const { call_id: id, output } = item as { call_id: string; output: Content };
    conversation.result(id, wordsIn(output, `${where}.output`), `${where}.call_id`);
  } else if (item.type === "message" && "role" in item) {
    const { role, content } = item as { role: "user" | "assistant" | "system" | "developer"; content: Content };
    const words = wordsIn(content, `${where}.content`);
    if (role === "user") conversation.user(words, imagesIn(content, `${where}.content`));
    else if (role === "assistant") conversation.assistant(words, []);
    else conversation.instruct(words);
  } else if (!PASSED_OVER.includes(item.type))
    throw badRequest(`${where}.type`, `items of the type "${item.type}" are not taken, or lack a field`);
}

type Content =
  | string
  | readonly { readonly type: string; readonly text?: unknown; readonly refusal?: unknown; readonly image_url?: unknown }[];

function wordsIn(content: Content, where: string): string {
  if (typeof content === "string") return content;
  const texts: string[] = [];
  for (const [index, { type, text, refusal }] of content.entries()) {
    if (typeof text === "string" && (type === "input_text" || type === "output_text" || type === "text")) texts.push(text);
    else if (typeof refusal === "string" && type === "refusal") texts.push(refusal);
    else if (type !== "input_image")
      throw badRequest(`${where}[${index}].type`, `parts of the type "${type}" are not taken, or lack a field`);
  }
  return texts.join("\n");
}

function imagesIn(content: Content, where: string): Image[] {
  if (typeof content === "string") return [];
  return content.flatMap(({ type, image_url: url }, index) => {
    if (type !== "input_image") return [];
    const place = `${where}[${index}].image_url`;
    if (typeof url !== "string") throw badRequest(place, "expected a data: URL");
    return [imageOf(url, place)];
  });
}

function settingsOf(sent: ResponsesRequest): ModelSettings {
  const { tool_choice: choice } = sent;
  const format = sent.text?.format;
  return given({
    temperature: sent.temperature,
    topP: sent.top_p,
    maxOutputTokens: sent.max_output_tokens,
    toolChoice: choice === null || choice === undefined || typeof choice === "string" ? choice : namedTool(choice),
    json: jsonOf(format?.type, format?.type === "json_schema" ? format.schema : null),
  });
}

function namedTool(choice: { readonly type: string; readonly name?: unknown }): { readonly tool: string } {
  if (choice.type === "function" && typeof choice.name === "string") return { tool: choice.name };
  throw badRequest("tool_choice.type", `the choice "${choice.type}" is not known`);
}
