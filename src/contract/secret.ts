import { z } from "zod";

const SHOWN = "[secret]";

/** A value that only its user may see: whatever prints, stores or sends it by mistake gets a placeholder. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Where it is used, and nowhere else. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return SHOWN;
  }

  toJSON(): string {
    return SHOWN;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return SHOWN;
  }
}

/** Numbers are accepted, since a token of digits is one in YAML. */
export const secret = z.union([z.string().max(100_000), z.int()], "expected a text").transform((value) => new Secret(String(value)));
