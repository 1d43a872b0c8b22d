import { forgotten, memoryQuery, note, noteList } from "../../contract/memory.ts";
import type { Memory } from "../../records/memory/memory.ts";
import { OVERSEERS, type Route, route } from "./route.ts";

export function memoryRoutes(memory: Memory): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/memory",
      summary: "What agents keep: the newest notes, or with `q` those that fit best; an agent sees its own",
      allow: [...OVERSEERS, "agent"],
      query: memoryQuery,
      answers: { 200: noteList },
      handle: async ({ caller, query }) => ({ status: 200, body: await memory.list(caller, query) }),
    }),
    route({
      method: "GET",
      path: "/api/memory/:id",
      summary: "One note, by its id or the beginning of it",
      allow: [...OVERSEERS, "agent"],
      answers: { 200: note },
      handle: async ({ caller, params }) => ({ status: 200, body: await memory.read(caller, params.id) }),
    }),
    route({
      method: "DELETE",
      path: "/api/memory/:id",
      summary: "Forget a note for good",
      allow: ["operator", "agent"],
      answers: { 200: forgotten },
      handle: ({ caller, params, transact }) =>
        transact("forget note", async (tx) => {
          const { id } = await memory.forgetIn(tx, caller, params.id);
          return { status: 200, body: { id, forgotten: true } };
        }),
    }),
  ];
}
