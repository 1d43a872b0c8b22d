import { ApiClient } from "../client/api-client.ts";
import { ClientError } from "../client/client-error.ts";
import { GuestsClient } from "../client/guests.ts";
import type { ErrorCode } from "../contract/errors.ts";
import { GUEST_RENEW_MS, type JoinedGuest } from "../contract/guests.ts";
import type { Workspace } from "../contract/workspace.ts";
import { agentAmong, ancestors, nameOfProcess } from "./processes.ts";

const LEAVE_MS = 2_000;
const FORGOTTEN = new Set<ErrorCode>(["request.unauthenticated", "request.not_found"]);
const LOST = new Set<ErrorCode>([...FORGOTTEN, "daemon.not_running"]);

/** The name and token of this process, for as long as it lives. */
export class McpIdentity {
  readonly #wanted: { readonly client: string; readonly name?: string; readonly workspace: Workspace };
  readonly #process: string | undefined;
  #guest: JoinedGuest | undefined;
  #url = "";
  #renewing: NodeJS.Timeout | undefined;
  /** Called when the daemon no longer knows us, or is away. */
  onLost: () => void = () => {};

  constructor(client: string, name: string | undefined, workspace: Workspace) {
    this.#wanted = { client, ...(name === undefined ? {} : { name }), workspace };
    const agent = agentAmong(ancestors());
    this.#process = agent && nameOfProcess(agent);
  }

  get name(): string | undefined {
    return this.#guest?.name;
  }

  get token(): string {
    return this.#guest?.token ?? "";
  }

  /** With a daemon that has restarted we are still who we were; with one that has forgotten us we join again, under the same name if it is free. */
  async join(operator: ApiClient): Promise<void> {
    this.#url = operator.url;
    if (this.#guest && (await this.#isStillKnown())) return;
    const was = this.#guest && { name: this.#guest.name, id: this.#guest.id };
    this.#guest = await new GuestsClient(operator).join({
      ...this.#wanted,
      ...(this.#process === undefined ? {} : { process: this.#process }),
      ...(was === undefined ? {} : { was }),
    });
    this.#renewing ??= setInterval(() => void this.#renew(), GUEST_RENEW_MS);
  }

  /** Gives the name back at once, if the daemon still answers. */
  async leave(): Promise<void> {
    clearInterval(this.#renewing);
    if (!this.#guest) return;
    const late = new Promise<void>((resolve) => setTimeout(resolve, LEAVE_MS).unref());
    await Promise.race([this.#own().leave(), late]).catch(() => {});
    this.#guest = undefined;
  }

  async #renew(): Promise<void> {
    try {
      await this.#own().renew();
    } catch (error) {
      // Anything else passes.
      if (error instanceof ClientError && LOST.has(error.code)) this.onLost();
    }
  }

  async #isStillKnown(): Promise<boolean> {
    try {
      await this.#own().renew();
      return true;
    } catch (error) {
      if (error instanceof ClientError && FORGOTTEN.has(error.code)) return false;
      throw error;
    }
  }

  #own(): GuestsClient {
    return new GuestsClient(new ApiClient(this.#url, this.token));
  }
}
