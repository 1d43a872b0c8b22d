import type { Caller } from "../../../kernel/caller.ts";
import { Failure } from "../../../kernel/failure.ts";
import { refuses, standstillOf } from "../../../records/agents/standstill.ts";
import { type Route, raw } from "../route.ts";
import type { OpenAiParts, SentRequest } from "./ask-agent.ts";
import { chatCompletions } from "./chat-completions.ts";
import { responses } from "./responses.ts";

/** Images come inside the body. What is kept of it is kept with the run. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Fifty for each message that may come: checking a list of millions takes seconds and gigabytes, whatever is wrong with it. */
const MAX_VALUES = 100_000;
const ALLOWED = ["operator", "agent"] as const;

type Answer = (parts: OpenAiParts, sent: SentRequest, left: AbortSignal, over: AbortSignal) => Promise<Response>;

/** Agents behind OpenAI's API: an agent is a model. */
export function openAiRoutes(parts: OpenAiParts): Route[] {
  const post = (path: string, summary: string, answer: Answer): Route =>
    raw({
      methods: ["POST"],
      path,
      summary,
      allow: ALLOWED,
      maxBodyBytes: MAX_BYTES,
      maxBodyValues: MAX_VALUES,
      answer: async (request, caller, over) =>
        answer(parts, { caller, path, headers: request.headers, body: await request.json() }, request.signal, over),
    });
  const get = (path: string, summary: string, answer: (caller: Caller, model: string) => unknown): Route =>
    raw({
      methods: ["GET"],
      path,
      summary,
      allow: ALLOWED,
      answer: async (request, caller) => {
        const model = decoded(new URL(request.url).pathname.split("/")[3] ?? "");
        return Response.json(answer(caller, model), { headers: { "cache-control": "no-store" } });
      },
    });
  return [
    post("/v1/chat/completions", "Ask an agent as if it were a model of OpenAI's chat completions; stateless", chatCompletions),
    post("/v1/responses", "Ask an agent as if it were a model of OpenAI's responses", responses),
    get("/v1/models", "The agents that this token may use, as models", (caller) => ({
      object: "list",
      data: usable(parts, caller).map(modelOf),
    })),
    get("/v1/models/:model", "One of them", (caller, model) => {
      if (usable(parts, caller).includes(model)) return modelOf(model);
      throw new Failure("agent.unknown", `there is no agent "${model}"`, { details: { param: "model" }, hint: "See /v1/models." });
    }),
  ];
}

function usable({ agents }: OpenAiParts, caller: Caller): string[] {
  return [...agents.current.agents.values()]
    .filter((agent) => {
      const standstill = standstillOf(agent);
      return (caller.kind === "operator" || caller.name === agent.id) && !(standstill && refuses(standstill));
    })
    .map(({ id }) => id);
}

/** What is not decodable is nobody's name, as it stands. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Agents have no date that would tell anything. */
function modelOf(id: string): unknown {
  return { id, object: "model", created: 0, owned_by: "guildhall" };
}
