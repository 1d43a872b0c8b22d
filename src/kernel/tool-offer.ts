import { canonicalJson } from "./canonical-json.ts";
import type { ToolOffer } from "./model.ts";

/** An offer that knows how it is written: it goes into every request, and is weighed, hashed and cleaned with each. */
export class Offer implements ToolOffer {
  readonly name: string;
  readonly description: string;
  readonly parameters: ToolOffer["parameters"];
  #written: string | undefined;

  constructor({ name, description, parameters }: ToolOffer) {
    this.name = name;
    this.description = description;
    this.parameters = parameters;
  }

  get written(): string {
    this.#written ??= canonicalJson({ description: this.description, name: this.name, parameters: this.parameters });
    return this.#written;
  }
}

/** As canonical JSON. */
export function writtenOffer(offer: ToolOffer): string {
  return offer instanceof Offer ? offer.written : new Offer(offer).written;
}

export function writtenOffers(offers: readonly ToolOffer[]): string {
  return `[${offers.map(writtenOffer).join(",")}]`;
}
