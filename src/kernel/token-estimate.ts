/** About four bytes are a token; in writing systems with long characters this comes closer than counting characters would. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / 4);
}
