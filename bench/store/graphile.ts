import type pg from "pg";
import { importPeer } from "../peers.ts";

/** The part of graphile-worker that is used here; its own types are only there once the peers are installed. */
export interface Graphile {
  readonly Logger: new (factory: () => () => void) => unknown;
  run(options: Readonly<Record<string, unknown>>): Promise<GraphileRunner>;
  makeWorkerUtils(options: Readonly<Record<string, unknown>>): Promise<GraphileUtils>;
}

export interface GraphileRunner {
  stop(): Promise<void>;
}

export interface GraphileUtils {
  migrate(): Promise<void>;
  addJob(task: string, payload: unknown): Promise<unknown>;
  addJobs(jobs: readonly { readonly identifier: string; readonly payload: unknown }[]): Promise<unknown>;
  release(): Promise<void>;
}

export const graphile = await importPeer<Graphile>("graphile-worker");

/** Says nothing, as ours says nothing. */
export const silent = new graphile.Logger(() => () => {});

/** Its documentation's settings for the best throughput (https://worker.graphile.org/docs/performance). */
export const BATCHED = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } as const;

/** It warns about pools whose errors nobody hears. */
export function quietPool(pool: pg.Pool): pg.Pool {
  return pool
    .on("error", () => {})
    .on("connect", (client) => {
      client.on("error", () => {});
    });
}
