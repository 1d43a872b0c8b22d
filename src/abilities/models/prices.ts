import type { ModelPrice } from "../../kernel/model.ts";

/**
 * US dollars for a million tokens, as published in autumn 2026. APPROXIMATE: without discounts, surcharges for long prompts or for writing
 * to caches; prices change without notice. `prices:` in the config comes before this table.
 * By the beginning of a model's name: the longest that fits counts, and what fits none has no known price.
 */
const PRICES: Readonly<Record<string, Readonly<Record<string, readonly [input: number, output: number, cachedInput: number]>>>> = {
  openai: {
    "gpt-4.1": [2, 8, 0.5],
    "gpt-4.1-mini": [0.4, 1.6, 0.1],
    "gpt-4.1-nano": [0.1, 0.4, 0.025],
    "gpt-4o": [2.5, 10, 1.25],
    "gpt-4o-mini": [0.15, 0.6, 0.075],
    "gpt-5": [1.25, 10, 0.125],
    "gpt-5-mini": [0.25, 2, 0.025],
    "gpt-5-nano": [0.05, 0.4, 0.005],
    "gpt-5-pro": [15, 120, 15],
    "gpt-5.1": [1.25, 10, 0.125],
    "gpt-5.1-codex-mini": [0.25, 2, 0.025],
    "gpt-5.2": [1.75, 14, 0.175],
    "gpt-5.2-pro": [21, 168, 21],
    "gpt-5.3": [1.75, 14, 0.175],
    "gpt-5.4": [2.5, 15, 0.25],
    "gpt-5.4-mini": [0.75, 4.5, 0.075],
    "gpt-5.4-nano": [0.2, 1.25, 0.02],
    "gpt-5.4-pro": [30, 180, 30],
    "gpt-5.5": [5, 30, 0.5],
    "gpt-5.5-pro": [30, 180, 30],
    "gpt-5.6": [5, 30, 0.5],
    "gpt-5.6-luna": [0.2, 1.2, 0.02],
    "gpt-5.6-terra": [2, 12, 0.2],
    "gpt-6-sol": [2, 10, 0.2],
    "gpt-6-luna": [0.1, 0.5, 0.01],
    o3: [2, 8, 0.5],
    "o3-deep-research": [10, 40, 2.5],
    "o3-mini": [1.1, 4.4, 0.55],
    "o3-pro": [20, 80, 20],
    "o4-mini": [1.1, 4.4, 0.275],
  },
  anthropic: {
    "claude-3-haiku": [0.25, 1.25, 0.03],
    "claude-fable-5": [10, 50, 1],
    "claude-haiku-4": [1, 5, 0.1],
    "claude-opus-4": [5, 25, 0.5],
    "claude-opus-4-0": [15, 75, 1.5],
    "claude-opus-4-1": [15, 75, 1.5],
    "claude-opus-4-2025": [15, 75, 1.5],
    "claude-opus-5": [5, 25, 0.5],
    "claude-opus-5-5": [4, 20, 0.4],
    "claude-sonnet": [3, 15, 0.3],
    "claude-sonnet-5-5": [2, 10, 0.2],
  },
  google: {
    "gemini-2.0-flash": [0.1, 0.4, 0.025],
    "gemini-2.5-flash": [0.3, 2.5, 0.03],
    "gemini-2.5-flash-lite": [0.1, 0.4, 0.01],
    "gemini-2.5-pro": [1.25, 10, 0.125],
    "gemini-3-flash": [0.5, 3, 0.05],
    "gemini-3-pro": [2, 12, 0.2],
    "gemini-3.1-pro": [2, 12, 0.2],
    "gemini-3.8-flash": [0.75, 3.75, 0.075],
    "gemini-flash-latest": [0.75, 3.75, 0.075],
  },
};
const FREE: ModelPrice = { input: 0, output: 0, cachedInput: 0 };

/** Null: not known. `maker` is whose model it is, whoever sells it. */
export function builtInPrice(maker: string, id: string): ModelPrice | null {
  if (maker === "offline" || maker === "ollama" || maker === "lmstudio") return FREE;
  const table = Object.hasOwn(PRICES, maker) ? PRICES[maker] : undefined;
  const longest = Object.keys(table ?? {})
    .filter((beginning) => id.startsWith(beginning))
    .reduce((best, beginning) => (beginning.length > best.length ? beginning : best), "");
  const [input, output, cachedInput] = table?.[longest] ?? [];
  return input === undefined || output === undefined || cachedInput === undefined ? null : { input, output, cachedInput };
}
