import type { ModelPrice } from "../../kernel/model.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { builtInPrice } from "./prices.ts";
import { anthropicId } from "./providers/open-provider.ts";
import type { ProviderSpec } from "./providers/provider-specs.ts";

/** What is known of a model without asking it. */
export interface ModelFacts {
  /** Absent: not known. */
  readonly contextTokens?: number;
  readonly seesImages: boolean;
  readonly price: ModelPrice | null;
}

interface Family {
  readonly name: RegExp;
  readonly contextTokens: number;
  readonly seesImages: boolean;
}

/** Careful rather than exact: a context that is taken for smaller than it is costs a summary, the other way round an error. The first that fits counts. */
const FAMILIES: readonly Family[] = [
  { name: /^claude-(opus|sonnet|haiku|fable)-5/, contextTokens: 1_000_000, seesImages: true },
  { name: /^claude-/, contextTokens: 200_000, seesImages: true },
  { name: /^gpt-(5\.[4-9]|[6-9])/, contextTokens: 1_000_000, seesImages: true },
  { name: /^gpt-5/, contextTokens: 272_000, seesImages: true },
  { name: /^gpt-4\.1/, contextTokens: 1_000_000, seesImages: true },
  { name: /^gpt-4o|^chatgpt-4o/, contextTokens: 128_000, seesImages: true },
  { name: /^o[1-9](-|$)/, contextTokens: 200_000, seesImages: true },
  { name: /^gemini-/, contextTokens: 1_000_000, seesImages: true },
];
/** Local families that look at pictures, by the names they go by. */
const LOCAL_EYES = /llava|vision|-vl\b|vl:|gemma[34]|pixtral|minicpm-v|moondream|llama4/i;

/** `prices`: those of the config, by full name. */
export function factsOf(spec: ProviderSpec, id: string, prices: ReadonlyMap<string, ModelPrice>): ModelFacts {
  const price = prices.get(`${spec.name}/${id}`) ?? builtIn(spec, id);
  // A server of one's own may call anything by any name, and give it as much room as it likes.
  const family =
    spec.type === "openai-compatible" || spec.type === "ollama" ? undefined : FAMILIES.find(({ name }) => name.test(plainId(spec, id)));
  if (!family) return { seesImages: LOCAL_EYES.test(id), price };
  return { contextTokens: family.contextTokens, seesImages: family.seesImages, price };
}

function builtIn(spec: ProviderSpec, id: string): ModelPrice | null {
  if (spec.type === "openrouter") return builtInPrice(id.split("/", 1)[0] ?? "", plainId(spec, id));
  // Not what somebody else's server asks for it.
  if (spec.type === "openai-compatible") return spec.name === "lmstudio" ? builtInPrice("lmstudio", id) : null;
  return builtInPrice(spec.type, plainId(spec, id));
}

/** As its maker calls it. */
function plainId(spec: ProviderSpec, id: string): string {
  return anthropicId(spec.type === "openrouter" ? (id.split("/").at(1) ?? id) : id);
}

/** The prices of the config. */
export function pricesOf({ config }: Pick<Settings, "config">): Map<string, ModelPrice> {
  return new Map(
    Object.entries(config.prices).map(([name, { input, output, cached_input: cachedInput }]) => [
      name,
      { input, output, ...(cachedInput === undefined ? {} : { cachedInput }) },
    ]),
  );
}
