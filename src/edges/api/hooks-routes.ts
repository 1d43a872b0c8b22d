import { Failure } from "../../kernel/failure.ts";
import { type Route, raw } from "./route.ts";

/** As much as WhatsApp puts into one post; the others' are smaller. */
const MAX_POST_BYTES = 3 * 1024 * 1024;

/** What platforms post to us. They have no token of ours: each channel checks the platform's own signature. */
export function hooksRoutes(receive: (platform: string, account: string, request: Request) => Promise<Response>): Route[] {
  const common = {
    methods: ["GET", "POST"],
    allow: "anyone",
    maxBodyBytes: MAX_POST_BYTES,
    isSigned: true,
    answer: (request: Request): Promise<Response> => {
      const [platform = "", account = "default"] = namesIn(request.url);
      return receive(platform, account, request);
    },
  } as const;
  return [
    raw({ ...common, path: "/hooks/:platform", summary: "What a chat platform posts to its account `default`" }),
    raw({ ...common, path: "/hooks/:platform/:account", summary: "What a chat platform posts to this account" }),
  ];
}

function namesIn(url: string): string[] {
  try {
    return new URL(url).pathname.split("/").slice(2).map(decodeURIComponent);
  } catch (error) {
    throw new Failure("request.not_found", "there is nothing here", { cause: error });
  }
}
