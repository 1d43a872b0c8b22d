import type { Caller } from "../src/kernel/caller.ts";

const outside = { run: null, step: null, call: null };

export const guest = (name: string): Caller => ({ kind: "guest", name, roles: [], ...outside });
export const agent = (name: string, ...roles: string[]): Caller => ({ kind: "agent", name, roles, ...outside });
export const reader: Caller = { kind: "reader", name: "reader", roles: [], ...outside };
