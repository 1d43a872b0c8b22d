/** `lost`: it does not answer, and may later. `refused`: it has answered, and asking again does not help. `unknown`: it knows no such task. */
export type TroubleKind = "lost" | "refused" | "unknown";

export class PeerTrouble extends Error {
  readonly kind: TroubleKind;

  constructor(kind: TroubleKind, message: string, options?: ErrorOptions) {
    super(message.slice(0, 1_000), options);
    this.kind = kind;
  }
}
