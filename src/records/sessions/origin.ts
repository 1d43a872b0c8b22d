import type { ChatFile } from "../../kernel/channel.ts";

/** What came with a message of a chat platform, beside its words. */
export interface Origin {
  /** The platform's id of it, to answer and to mark it. */
  readonly messageId: string;
  /** `path`: where it lies in the workspace once it was fetched. */
  readonly files: readonly (ChatFile & { readonly path: string })[];
  /** It carries words of others: quoted, passed on, or in a file. */
  readonly isExternal: boolean;
}
