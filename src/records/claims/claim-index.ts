import type { Claim } from "../../contract/claims.ts";
import { overlap, type Resource, takenApart } from "./resource.ts";

interface Known {
  readonly claim: Claim;
  readonly resource: Resource;
}

/** Many claims, to be asked about many names: a name is compared only with claims whose key lies on the way to it. */
export class ClaimIndex {
  readonly #all: Known[] = [];
  readonly #byKey = new Map<string, Known[]>();

  add(claim: Claim): void {
    const known = { claim, resource: takenApart(claim.resource) };
    this.#all.push(known);
    const same = this.#byKey.get(known.resource.key);
    if (same) same.push(known);
    else this.#byKey.set(known.resource.key, [known]);
  }

  /** One that overlaps with the name, which need not be one that can be claimed: a file may have any. */
  find(name: string): Claim | undefined {
    const asked = takenApart(name);
    const near = asked.pattern ? this.#all : [...asked.keysAbove, asked.key].flatMap((key) => this.#byKey.get(key) ?? []);
    return near.find(({ resource }) => overlap(asked, resource))?.claim;
  }
}
