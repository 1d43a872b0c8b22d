import { expect, test } from "vitest";
import { harmless } from "./terminal.ts";

test("a stranger's text cannot command the terminal", () => {
  expect(harmless("plain\ttext\nü\u001b[2J\u0007\u009b31m\r")).toBe("plain\ttext\nü[2J31m");
});
