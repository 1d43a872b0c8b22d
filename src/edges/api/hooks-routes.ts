import { type Route, raw } from "./route.ts";

/** What platforms post to us. They have no token of ours: each channel checks the platform's own signature. */
export function hooksRoutes(receive: (platform: string, account: string, request: Request) => Promise<Response>): Route[] {
  const answer = (request: Request): Promise<Response> => {
    const [, , platform = "", account = "default"] = new URL(request.url).pathname.split("/").map(decodeURIComponent);
    return receive(platform, account, request);
  };
  const methods = ["GET", "POST"];
  return [
    raw({ methods, path: "/hooks/:platform", summary: "What a chat platform posts to its account `default`", allow: "anyone", answer }),
    raw({ methods, path: "/hooks/:platform/:account", summary: "What a chat platform posts to this account", allow: "anyone", answer }),
  ];
}
