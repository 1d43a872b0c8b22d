import { stopRunIn } from "../../acts/stop-runs.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import {
  sessionHits,
  sessionList,
  sessionQuery,
  sessionSearch,
  transcriptPage,
  transcriptQuery,
  whereAnswer,
  whereQuery,
} from "../../contract/sessions.ts";
import { run } from "../../contract/wire.ts";
import type { WhereTo } from "../../drivers/intake/where-to.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import type { Sessions } from "../../records/sessions/sessions.ts";
import { OPERATORS, OVERSEERS, type Route, route } from "./route.ts";

export interface SessionsParts {
  readonly tasks: TaskParts;
  readonly sessions: Sessions;
  readonly running: RunningTurns;
  readonly whereTo: WhereTo;
}

export function sessionsRoutes({ tasks, sessions, running, whereTo }: SessionsParts): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/sessions",
      summary: "Conversations, the newest first; an agent sees its own and those of agents in its `sees`",
      allow: [...OVERSEERS, "agent"],
      query: sessionQuery,
      answers: { 200: sessionList },
      handle: async ({ caller, query }) => ({ status: 200, body: await sessions.list(caller, query) }),
    }),
    route({
      method: "GET",
      path: "/api/sessions/search",
      summary: "What was said, found by its words",
      allow: [...OVERSEERS, "agent"],
      query: sessionSearch,
      answers: { 200: sessionHits },
      handle: async ({ caller, query }) => ({ status: 200, body: await sessions.search(caller, query) }),
    }),
    route({
      method: "GET",
      path: "/api/sessions/where",
      summary: "With whom the conversation of an address is now, handovers included",
      allow: OVERSEERS,
      query: whereQuery,
      answers: { 200: whereAnswer },
      handle: async ({ query }) => {
        const { chat_type: chatType, guild = null, topic = null, ...rest } = query;
        const { decision, sessionKey } = await whereTo({ ...rest, chatType, guild, topic, roles: [] });
        return { status: 200, body: { agent: decision.agent, sessionKey, because: decision.because } };
      },
    }),
    route({
      method: "GET",
      path: "/api/sessions/:key",
      summary: "One conversation and what was said in it, the newest part first",
      allow: [...OVERSEERS, "agent"],
      query: transcriptQuery,
      answers: { 200: transcriptPage },
      handle: async ({ caller, params, query }) => ({ status: 200, body: await sessions.read(caller, params.key, query) }),
    }),
    route({
      method: "POST",
      path: "/api/runs/:id/stop",
      summary: "Stop a turn that waits or runs: whatever it still does, nothing of it is kept",
      allow: OPERATORS,
      answers: { 200: run },
      handle: async ({ caller, params, transact }) => {
        const answer = await transact("stop run", async (tx) => ({
          status: 200,
          body: await stopRunIn(tasks, tx, params.id, caller.name),
        }));
        running.stop(answer.body.mergedInto ?? answer.body.id);
        return answer;
      },
    }),
  ];
}
