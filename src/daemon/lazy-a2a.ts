import type { A2aAnswer } from "../edges/a2a/a2a-endpoint.ts";
import type { A2aParts } from "../edges/a2a/a2a-parts.ts";
import { Failure } from "../kernel/failure.ts";

/** The protocol's SDK is loaded with the first request for it, and never where nobody is published. */
export function lazyA2a(parts: A2aParts): A2aAnswer {
  let endpoint: Promise<A2aAnswer> | undefined;
  return async (request, caller, signal) => {
    if (parts.tasks.agents.current.settings.config.a2a.agents.length === 0)
      throw new Failure("request.not_found", `there is no ${request.method} ${new URL(request.url).pathname}`);
    endpoint ??= import("../edges/a2a/a2a-endpoint.ts").then(({ a2aEndpoint }) => a2aEndpoint(parts));
    return (await endpoint)(request, caller, signal);
  };
}
