import { z } from "zod";
import type { Config } from "../../../contract/config.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { GuardedRequest } from "./guarded-fetch.ts";

export interface SearchResult {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

export type SearchConfig = Config["web"]["search"];

/** Where the providers are, so that a test can put others in their place. */
export interface ProviderBases {
  readonly brave: string;
  readonly tavily: string;
}
export const PROVIDER_BASES: ProviderBases = { brave: "https://api.search.brave.com", tavily: "https://api.tavily.com" };

/** One question to a provider, and how to read its answer. */
export interface ProviderQuestion {
  readonly name: string;
  readonly request: Pick<GuardedRequest, "url" | "method" | "headers" | "body">;
  /** It may be a private one: the operator wrote it. */
  readonly host: string | null;
  read(answer: unknown): SearchResult[];
}

const RESULTS = 10;
const words = z.string().nullish();
const searxngAnswer = z.object({ results: z.array(z.object({ title: words, url: z.string(), content: words })) });
const braveAnswer = z.object({
  web: z.object({ results: z.array(z.object({ title: words, url: z.string(), description: words })) }).optional(),
});
const tavilyAnswer = z.object({ results: z.array(z.object({ title: words, url: z.string(), content: words })) });

/** The first that the config names; null: it names none. */
export function questionFor({ searxng, brave, tavily }: SearchConfig, query: string, bases: ProviderBases): ProviderQuestion | null {
  if (searxng !== undefined) return askSearxng(searxng, query);
  if (brave !== undefined) return askBrave(bases.brave, brave.reveal(), query);
  if (tavily !== undefined) return askTavily(bases.tavily, tavily.reveal(), query);
  return null;
}

function askSearxng(base: string, query: string): ProviderQuestion {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/search`;
  url.searchParams.set("q", query);
  url.searchParams.set("format", "json");
  const read = (answer: unknown) => shaped("SearXNG", searxngAnswer, answer).results.map((one) => result(one.title, one.url, one.content));
  return { name: "SearXNG", request: { url: url.href, headers: { accept: "application/json" } }, host: url.host, read };
}

function askBrave(base: string, key: string, query: string): ProviderQuestion {
  const url = new URL("/res/v1/web/search", base);
  url.searchParams.set("q", query.slice(0, 400));
  url.searchParams.set("count", String(RESULTS));
  const headers = { accept: "application/json", "x-subscription-token": key };
  const read = (answer: unknown) =>
    (shaped("Brave", braveAnswer, answer).web?.results ?? []).map((one) => result(one.title, one.url, one.description));
  return { name: "Brave", request: { url: url.href, headers }, host: null, read };
}

function askTavily(base: string, key: string, query: string): ProviderQuestion {
  const headers = { "content-type": "application/json", accept: "application/json", authorization: `Bearer ${key}` };
  const body = JSON.stringify({ query: query.slice(0, 400), max_results: RESULTS });
  const read = (answer: unknown) => shaped("Tavily", tavilyAnswer, answer).results.map((one) => result(one.title, one.url, one.content));
  return { name: "Tavily", request: { url: new URL("/search", base).href, method: "POST", headers, body }, host: null, read };
}

function shaped<Schema extends z.ZodType>(name: string, schema: Schema, answer: unknown): z.output<Schema> {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  throw new Failure("tool.failed", `${name} answers in a form that is not known`);
}

function result(title: string | null | undefined, url: string, snippet: string | null | undefined): SearchResult {
  return { title: plain(title, 200) || url.slice(0, 200), url: url.slice(0, 2_000), snippet: plain(snippet, 500) };
}

/** Providers mark the words they have found with tags. */
function plain(text: string | null | undefined, characters: number): string {
  return (text ?? "")
    .slice(0, 4 * characters)
    .replace(/<[^<>]{0,100}>/g, "")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, characters);
}
