import { z } from "zod";
import { text } from "../../../contract/text.ts";
import { Failure } from "../../../kernel/failure.ts";
import { defineTool, type Tool } from "../tool.ts";
import { type GuardedResponse, guardedFetch, type Resolve } from "./guarded-fetch.ts";
import { type ProviderBases, questionFor, type SearchResult } from "./search-providers.ts";

const MAX_RESULTS = 10;
const MAX_BYTES = 2_000_000;

export function webSearchTool(resolve: Resolve, bases: ProviderBases, privateHosts: readonly string[] = []): Tool {
  return defineTool({
    name: "web_search",
    description: "Search the web. Answers titles, addresses and short pieces of text; web_fetch reads a page.",
    parameters: z.strictObject({ query: text(1_000) }),
    effect: "pure",
    egress: true,
    run: async ({ query }, { revision, signal }) => {
      const question = questionFor(revision.settings.config.web.search, query, bases);
      if (!question)
        throw new Failure("tool.unavailable", "no search is configured", {
          hint: "The operator writes `web: { search: { searxng: http://… } }` in the config, or `brave:` or `tavily:` with a key.",
        });
      const allowed = question.host === null ? privateHosts : [...privateHosts, withPort(question.request.url)];
      const answer = await guardedFetch({ ...question.request, privateHosts: allowed, signal, resolve, maxBytes: MAX_BYTES });
      const results = question.read(jsonOf(question.name, answer)).filter(isOnTheWeb).slice(0, MAX_RESULTS);
      const output = results.length === 0 ? "Nothing was found." : results.map(inWords).join("\n\n");
      return { output, labels: ["external"], told: { provider: question.name, found: results.length } };
    },
  });
}

/** That port of that host, and nothing else there. */
function withPort(address: string): string {
  const { host, port, protocol } = new URL(address);
  return port === "" ? `${host}:${protocol === "https:" ? 443 : 80}` : host;
}

function jsonOf(name: string, { status, bytes, cut }: GuardedResponse): unknown {
  if (status === 401 || status === 403)
    throw new Failure("tool.unavailable", `${name} answers ${status}`, {
      hint: "The operator checks the key under `web.search`, and for SearXNG that it offers JSON (`search.formats`).",
    });
  if (status === 429) throw new Failure("tool.unavailable", `${name} has been asked too often; try again later`);
  if (status >= 400 || cut) throw new Failure("tool.failed", `${name} answers ${cut ? "too much" : status}`);
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    throw new Failure("tool.failed", `${name} does not answer with JSON`);
  }
}

function isOnTheWeb({ url }: SearchResult): boolean {
  return /^https?:\/\//i.test(url);
}

function inWords({ title, url, snippet }: SearchResult, index: number): string {
  return `${index + 1}. ${title}\n${url}${snippet === "" ? "" : `\n${snippet}`}`;
}
