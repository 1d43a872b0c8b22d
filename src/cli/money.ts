/** US dollars as a person reads them: cents where there are many, more places where there are few. */
export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  if (amount >= 1) return `$${amount.toFixed(2)}`;
  return `$${amount.toFixed(6).replace(/0+$/, "").replace(/\.$/, "")}`;
}

/** Of a call, in millionths; null: nobody knows the price. */
export function costInWords(millionths: number | null): string {
  return millionths === null ? "price unknown" : dollars(millionths / 1e6);
}

export function tokensInWords({ inputTokens, outputTokens, cachedInputTokens = 0 }: TokenCounts): string {
  const cached = cachedInputTokens > 0 ? ` (${cachedInputTokens} cached)` : "";
  return `${inputTokens} in${cached}, ${outputTokens} out`;
}

interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number | undefined;
}
