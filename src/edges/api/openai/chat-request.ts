import { type ChatMessage, type ChatRequest, chatRequest } from "../../../contract/openai.ts";
import type { Image, ModelSettings, ToolOffer } from "../../../kernel/model.ts";
import { Conversation, imageOf } from "./conversation.ts";
import { badRequest } from "./openai-error.ts";
import { type Asked, given, jsonOf, read, refuseTwins, refuseUnknownChoice } from "./read-request.ts";

export interface AskedByChat extends Asked {
  readonly includeUsage: boolean;
}

/** What is asked for by `POST /v1/chat/completions`. */
export function readChatRequest(body: unknown): AskedByChat {
  const request = read(chatRequest, body);
  refuseWhatWeCannot(request);
  const conversation = new Conversation("messages");
  for (const [index, message] of request.messages.entries()) add(conversation, message, `messages[${index}]`);
  const tools = (request.tools ?? []).map(({ function: { name, description, parameters } }): ToolOffer => {
    return { name, description: description ?? "", parameters: parameters ?? { type: "object", properties: {} } };
  });
  const settings = settingsOf(request);
  refuseTwins(tools);
  refuseUnknownChoice(settings.toolChoice, tools);
  return {
    agent: request.model,
    conversation: conversation.whole(),
    tools,
    settings,
    stream: request.stream ?? false,
    includeUsage: request.stream_options?.include_usage ?? false,
  };
}

function refuseWhatWeCannot({ n, logprobs, functions, audio }: ChatRequest): void {
  if ((n ?? 1) > 1) throw badRequest("n", "an agent gives one answer; leave n out, or send the request as often as you want answers");
  if (logprobs) throw badRequest("logprobs", "agents do not tell probabilities");
  if (functions !== undefined && functions !== null) throw badRequest("functions", "this old form is not taken; use tools");
  if (audio !== undefined && audio !== null) throw badRequest("audio", "agents answer in text");
}

function add(conversation: Conversation, message: ChatMessage, where: string): void {
  const { role } = message;
  if (role === "user") conversation.user(wordsIn(message.content, where), imagesIn(message.content, where));
  else if (role === "tool") conversation.result(message.tool_call_id, wordsIn(message.content, where), `${where}.tool_call_id`);
  else if (role === "assistant") {
    const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: args } }) => ({ id, tool: name, args }));
    conversation.assistant(message.content ? wordsIn(message.content, where) : (message.refusal ?? ""), calls);
  } else conversation.instruct(wordsIn(message.content, where));
}

type Content = Exclude<ChatMessage["content"], null | undefined>;

function wordsIn(content: Content, where: string): string {
  if (typeof content === "string") return content;
  const texts: string[] = [];
  for (const [index, part] of content.entries()) {
    if (part.type === "text" && typeof part.text === "string") texts.push(part.text);
    else if (part.type === "refusal" && typeof part.refusal === "string") texts.push(part.refusal);
    else if (part.type !== "image_url")
      throw badRequest(`${where}.content[${index}].type`, `parts of the type "${part.type}" are not taken, or lack a field`);
  }
  return texts.join("\n");
}

function imagesIn(content: Content, where: string): Image[] {
  if (typeof content === "string") return [];
  return content.flatMap((part, index) => {
    if (part.type !== "image_url") return [];
    const place = `${where}.content[${index}].image_url`;
    if (typeof part.image_url !== "string") throw badRequest(place, "expected an object with a url");
    return [imageOf(part.image_url, place)];
  });
}

function settingsOf(request: ChatRequest): ModelSettings {
  const { stop, response_format: format, tool_choice: choice } = request;
  return given({
    temperature: request.temperature,
    topP: request.top_p,
    maxOutputTokens: request.max_completion_tokens ?? request.max_tokens,
    stop: typeof stop === "string" ? [stop] : stop,
    seed: request.seed,
    toolChoice: typeof choice === "object" && choice !== null ? { tool: choice.function.name } : choice,
    json: jsonOf(format?.type, format?.type === "json_schema" ? format.json_schema.schema : null),
  });
}
