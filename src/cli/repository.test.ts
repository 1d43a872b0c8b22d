import { expect, test } from "vitest";
import { normalOrigin } from "./repository.ts";

test.each([
  ["git@github.com:org/shop.git", "github.com/org/shop"],
  ["https://GitHub.com/org/shop", "github.com/org/shop"],
  ["https://user:secret@github.com/org/shop.git/", "github.com/org/shop"],
  ["ssh://git@github.com:22/org/shop.git", "github.com/org/shop"],
  ["github.com:org/shop", "github.com/org/shop"],
  ["/srv/git/shop.git", "/srv/git/shop"],
  ["../shop.git", "/home/shop"],
  ["file:///srv/git/shop.git", "/srv/git/shop"],
])("%s comes from %s", (origin, expected) => {
  expect(normalOrigin(origin, "/home/here")).toBe(expected);
});
