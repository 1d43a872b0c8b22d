import { createInterface } from "node:readline";
import { claimSomething } from "./http-claim-moves.ts";
import { HttpClient } from "./http-client.ts";
import { receiveMail, sendMail } from "./http-mail-moves.ts";
import { PoolMoves } from "./http-pool-moves.ts";
import { ProposalMoves } from "./http-proposal-moves.ts";
import type { ClientPlan } from "./http-records.ts";

/** A client process. It is told on its standard input which keys to use (`generation N`) and when to come to an end (`drain`). */
const plan = JSON.parse(process.argv[2] as string) as ClientPlan;
const client = new HttpClient(plan);
const pool = new PoolMoves(client);
const proposals = new ProposalMoves(client);
let draining = false;

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const [word, number] = line.split(" ");
    if (word === "generation") client.generation = Number(number);
    if (word === "drain") draining = true;
  })
  .on("close", () => {
    draining = true;
  });

async function move(): Promise<unknown> {
  const choice = client.random.fraction();
  if (choice < 0.45) return pool.register();
  if (choice < 0.57) return pool.increment();
  if (choice < 0.63) return pool.pair();
  if (choice < 0.72) return claimSomething(client);
  if (choice < 0.78) return sendMail(client);
  if (choice < 0.84) return receiveMail(client);
  if (choice < 0.87) return proposals.propose();
  if (choice < 0.97) return proposals.vote();
  return proposals.look();
}

async function hand(): Promise<void> {
  while (!draining) {
    await move();
    await client.repeatOpen();
    await client.pause(15);
  }
}

await Promise.all(Array.from({ length: plan.hands }, hand));
await client.drain();
process.exit(0);
