import { z } from "zod";

/**
 * What programs that speak OpenAI's API send us. Fields that we do not know are passed over: clients send more every year. What we know
 * and cannot do is refused where the request is read (edges/api/openai), because silence would look like an answer.
 */
export const MAX_MESSAGES = 2_000;
const MAX_TOOLS = 128;
const MAX_TEXT = 4_000_000;

/** OpenAI's own rule for names. */
const toolName = z.string().regex(/^[\w-]{1,64}$/, "expected 1 to 64 letters, digits, _ or -");
const words = z.string().max(MAX_TEXT);
const schema = z.record(z.string(), z.unknown());

const textPart = z.looseObject({ type: z.literal("text"), text: words });
const imagePart = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.union([z.string(), z.looseObject({ url: z.string() }).transform(({ url }) => url)]),
});
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: words });
/** Kept, to be refused by its name. */
const otherPart = z.looseObject({ type: z.string() });

const textContent = z.union([words, z.array(z.union([textPart, otherPart]))]);
const userContent = z.union([words, z.array(z.union([textPart, imagePart, otherPart]))]);
const assistantContent = z.union([words, z.array(z.union([textPart, refusalPart, otherPart]))]);

const chatCall = z.looseObject({
  id: z.string().min(1).max(256),
  type: z.literal("function").default("function"),
  function: z.looseObject({ name: toolName, arguments: words }),
});

const chatMessage = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "developer"]), content: textContent }),
  z.looseObject({ role: z.literal("user"), content: userContent }),
  z.looseObject({
    role: z.literal("assistant"),
    content: assistantContent.nullish(),
    refusal: words.nullish(),
    tool_calls: z.array(chatCall).max(MAX_TOOLS).nullish(),
  }),
  z.looseObject({ role: z.literal("tool"), tool_call_id: z.string().min(1).max(256), content: textContent }),
]);
export type ChatMessage = z.output<typeof chatMessage>;

const chatTool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({
    name: toolName,
    description: z.string().max(20_000).nullish(),
    parameters: schema.nullish(),
  }),
});

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: toolName }) }),
]);

const responseFormat = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({ type: z.literal("json_schema"), json_schema: z.looseObject({ schema: schema.nullish() }) }),
]);

const tokens = z.int().min(1).max(10_000_000);
const sampling = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
};

export const chatRequest = z.looseObject({
  model: z.string().min(1).max(256),
  messages: z.array(chatMessage).min(1).max(MAX_MESSAGES),
  tools: z.array(chatTool).max(MAX_TOOLS).nullish(),
  tool_choice: toolChoice.nullish(),
  response_format: responseFormat.nullish(),
  ...sampling,
  max_tokens: tokens.nullish(),
  max_completion_tokens: tokens.nullish(),
  stop: z.union([z.string().max(1_000), z.array(z.string().max(1_000)).max(4)]).nullish(),
  seed: z.int().nullish(),
  n: z.int().min(1).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: z.boolean().nullish(),
  functions: z.unknown().optional(),
  audio: z.unknown().optional(),
});
export type ChatRequest = z.output<typeof chatRequest>;

const inputPart = z.union([
  z.looseObject({ type: z.enum(["input_text", "output_text", "text"]), text: words }),
  z.looseObject({ type: z.literal("refusal"), refusal: words }),
  z.looseObject({ type: z.literal("input_image"), image_url: z.string().nullish() }),
  otherPart,
]);
const inputContent = z.union([words, z.array(inputPart)]);

const inputItem = z.union([
  z.looseObject({ type: z.literal("function_call"), call_id: z.string().min(1).max(256), name: toolName, arguments: words }),
  z.looseObject({
    type: z.literal("function_call_output"),
    call_id: z.string().min(1).max(256),
    output: inputContent,
  }),
  z.looseObject({
    type: z.literal("message").default("message"),
    role: z.enum(["user", "assistant", "system", "developer"]),
    content: inputContent,
  }),
  otherPart,
]);
export type InputItem = z.output<typeof inputItem>;

const responseTool = z.union([
  z.looseObject({
    type: z.literal("function"),
    name: toolName,
    description: z.string().max(20_000).nullish(),
    parameters: schema.nullish(),
  }),
  otherPart,
]);

export const responsesRequest = z.looseObject({
  model: z.string().min(1).max(256),
  input: z.union([words, z.array(inputItem).max(MAX_MESSAGES)]),
  instructions: words.nullish(),
  previous_response_id: z.string().max(256).nullish(),
  tools: z.array(responseTool).max(MAX_TOOLS).nullish(),
  tool_choice: z
    .union([z.enum(["none", "auto", "required"]), z.looseObject({ type: z.literal("function"), name: toolName }), otherPart])
    .nullish(),
  text: z
    .looseObject({
      format: z
        .discriminatedUnion("type", [
          z.looseObject({ type: z.literal("text") }),
          z.looseObject({ type: z.literal("json_object") }),
          z.looseObject({ type: z.literal("json_schema"), schema: schema.nullish() }),
        ])
        .nullish(),
    })
    .nullish(),
  ...sampling,
  max_output_tokens: tokens.nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  conversation: z.unknown().optional(),
  prompt: z.unknown().optional(),
});
export type ResponsesRequest = z.output<typeof responsesRequest>;

export const openAiError = z.object({
  error: z.object({ message: z.string(), type: z.string(), param: z.string().nullable(), code: z.string().nullable() }),
});
export type OpenAiError = z.output<typeof openAiError>;
