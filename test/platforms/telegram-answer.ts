/** What the Bot API refuses, in its own words. */
export class Refusal extends Error {
  readonly status: number;
  readonly parameters: Readonly<Record<string, unknown>> | undefined;

  constructor(status: number, words: string, parameters?: Readonly<Record<string, unknown>>) {
    super(words);
    this.status = status;
    this.parameters = parameters;
  }

  get body(): object {
    return { ok: false, error_code: this.status, description: this.message, ...(this.parameters ? { parameters: this.parameters } : {}) };
  }
}

export function badRequest(words: string, parameters?: Readonly<Record<string, unknown>>): Refusal {
  return new Refusal(400, `Bad Request: ${words}`, parameters);
}

export function tooMany(seconds: number): Refusal {
  return new Refusal(429, `Too Many Requests: retry after ${seconds}`, { retry_after: seconds });
}
