import { expect, test } from "vitest";
import { resourceOfFile } from "./file-resource.ts";

const workspace = { repository: "shop~0123abcd", tops: ["/code/shop", "/home/me/shop"], prefix: "packages/a/" };

test.each([
  ["x.ts", "packages/a/x.ts"],
  ["./src/**", "packages/a/src/**"],
  ["../b/x.ts", "packages/b/x.ts"],
  ["/code/shop/x.ts", "x.ts"],
  ["/home/me/shop/src/x.ts", "src/x.ts"],
  ["/code/shop", "**"],
  ["src/", "packages/a/src/**"],
  ["app/[id]/page.tsx", "packages/a/app/[id]/page.tsx"],
  ["../../x.ts", "x.ts"],
])("%s is claimed as %s", (file, path) => {
  expect(resourceOfFile(workspace, file)).toBe(`repo/shop~0123abcd/${path}`);
});

test.each(["../../../x.ts", "/code/shopping/x.ts", "/etc/passwd", "/code/shop/../x", "src/{a,b}.ts", "a?.ts"])("%s is refused", (file) => {
  expect(() => resourceOfFile(workspace, file)).toThrow(expect.objectContaining({ code: "request.malformed" }));
});

test("without a repository there are no files to claim", () => {
  expect(() => resourceOfFile(undefined, "a.ts")).toThrow("has not said in which repository");
});
