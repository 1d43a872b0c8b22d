import type { HttpClient } from "./http-client.ts";
import { agreedKey, POOL } from "./http-records.ts";
import type { Answer } from "./http-wire.ts";

interface SentProposal {
  readonly id: string;
  readonly hash: string;
  readonly state: string;
  readonly because: string | null;
  readonly votes?: readonly { readonly voter: string; readonly vote: string }[];
}

/** Proposes a write and votes on what others propose. */
export class ProposalMoves {
  readonly #client: HttpClient;
  #known: string[] = [];

  constructor(client: HttpClient) {
    this.#client = client;
  }

  async propose(): Promise<void> {
    const client = this.#client;
    const value = client.unique();
    const body = {
      subject: value,
      electorate: client.plan.names,
      rule: client.pick(["all", "majority", { k: 1 }, { k: 2 }]),
      deadline_ms: 500 + Math.floor(client.random.fraction() * 3_500),
      writes: [{ pool: POOL, key: agreedKey(value), value }],
    };
    await client.keyed("/api/proposals", body, (answer) => {
      if (answer && answer.status !== 201) return client.odd("a proposal", answer);
      const id = answer && (answer.body.id as string);
      client.tell({ kind: "proposed", value, id });
      if (id) this.#know(id);
    });
  }

  async vote(): Promise<void> {
    const client = this.#client;
    const list = await client.ask("GET", "/api/proposals?state=open&limit=10");
    if (list.status !== 200) return;
    const open = list.body.proposals as SentProposal[];
    if (open.length === 0) return this.look();
    const { id, hash } = client.pick(open);
    this.#know(id);
    const vote = client.chance(0.8) ? "yes" : client.pick(["no", "veto"]);
    const answer = await client.ask("POST", `/api/proposals/${id}/votes`, { body: { vote, hash } });
    const { called, returned } = answer;
    if (answer.status !== null && answer.status !== 200 && answer.status !== 409) client.odd("a vote", answer);
    const cast = answer.status === 200 ? (answer.body as unknown as SentProposal).votes : undefined;
    const counted = cast?.some((each) => each.voter === client.name && each.vote === vote) === true;
    client.tell({ kind: "voted", id, vote, counted, called, returned });
    this.#saw(answer);
  }

  async look(): Promise<void> {
    const id = this.#known.length > 0 ? this.#client.pick(this.#known) : undefined;
    if (id) this.#saw(await this.#client.ask("GET", `/api/proposals/${id}`));
  }

  #know(id: string): void {
    this.#known = [...new Set([...this.#known, id])].slice(-10);
  }

  #saw(answer: Answer): void {
    if (answer.status !== 200) return;
    const { id, state, because } = answer.body as unknown as SentProposal;
    this.#client.tell({ kind: "saw", id, state, because, called: answer.called, returned: answer.returned });
  }
}
