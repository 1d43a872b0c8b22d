/** Where a message comes from. Total: whatever a platform does not have is null, so that rules never ask what is missing. */
export interface Address {
  readonly platform: string;
  readonly account: string;
  readonly guild: string | null;
  readonly chat: string;
  readonly topic: string | null;
  readonly chatType: "dm" | "group" | "channel";
  /** The sender. */
  readonly peer: string;
  readonly roles: readonly string[];
}
