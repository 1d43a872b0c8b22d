import { spawnSync } from "node:child_process";
import { beforeAll, describe, expect, test } from "vitest";
import { isFailure } from "../../kernel/failure.ts";
import { isWithinMinute, loadCron, type ReadCron } from "./cron-rule.ts";

let read: ReadCron;
beforeAll(async () => {
  read = await loadCron();
});

const at = (text: string): number => Date.parse(text);
const nexts = (cron: string, timezone: string, after: string, count: number): string[] => {
  const rule = read(cron, timezone);
  const times: string[] = [];
  for (let time: number | null = at(after); times.length < count; ) {
    time = rule.next(time as number);
    if (time === null) break;
    times.push(new Date(time).toISOString());
  }
  return times;
};

describe("times", () => {
  test("are those of the time zone, with or without seconds, by name, or one moment", () => {
    expect(nexts("0 9 * * 1-5", "Europe/Zurich", "2026-11-13T12:00:00Z", 2)).toEqual([
      "2026-11-16T08:00:00.000Z",
      "2026-11-17T08:00:00.000Z",
    ]);
    expect(nexts("*/20 * * * * *", "UTC", "2026-01-01T00:00:00.500Z", 3).map((time) => time.slice(17, 19))).toEqual(["20", "40", "00"]);
    expect(nexts("@daily", "Asia/Tokyo", "2026-01-01T00:00:00Z", 1)).toEqual(["2026-01-01T15:00:00.000Z"]);
    expect(nexts("2030-12-24T18:00:00", "Europe/Zurich", "2026-01-01T00:00:00Z", 2)).toEqual(["2030-12-24T17:00:00.000Z"]);
  });

  test("in spring: a time that does not exist runs right after the gap; what repeats skips it", () => {
    expect(nexts("30 2 * * *", "Europe/Zurich", "2026-03-28T12:00:00Z", 2)).toEqual([
      "2026-03-29T01:00:00.000Z",
      "2026-03-30T00:30:00.000Z",
    ]);
    expect(nexts("*/30 2 * * *", "Europe/Zurich", "2026-03-28T12:00:00Z", 1)).toEqual(["2026-03-30T00:00:00.000Z"]);
  });

  test("in autumn: a time that comes twice runs once, at the first; what repeats runs through both hours", () => {
    expect(nexts("30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
    expect(nexts("*/30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z", 4)).toEqual([
      "2026-10-25T00:00:00.000Z",
      "2026-10-25T00:30:00.000Z",
      "2026-10-25T01:00:00.000Z",
      "2026-10-25T01:30:00.000Z",
    ]);
  });

  test.each(["*/7 * * * *", "0 9 * * 1-5", "30 2 * * *", "*/30 2 * * *", "15,45 */3 * 3,10 *"])(
    "counted back are the same as counted forth: %s",
    (cron) => {
      const rule = read(cron, "Europe/Zurich");
      for (const around of ["2026-03-29T06:00:00Z", "2026-10-25T06:00:00Z", "2026-11-15T21:00:00.123Z"]) {
        const until = at(around);
        const back = rule.newest(10, until);
        expect(back).toHaveLength(10);
        const forth: number[] = [];
        for (let time = rule.next((back[0] as number) - 1); time !== null && time <= until; time = rule.next(time)) forth.push(time);
        expect(back).toEqual(forth);
      }
    },
  );

  test.each([
    ["61 * * * *", "UTC", /minute: 61.*0 9 \* \* 1-5/],
    ["* * *", "UTC", /five.*"@daily"/],
    ["@reboot", "UTC", /not supported/],
    ["whenever", "UTC", /"whenever" says no times/],
    ["* * * * *", "Europe/Zurik", /no time zone "Europe\/Zurik".*"Europe\/Zurich"/],
  ])("%s in %s are refused, with what is wrong and an example", (cron, timezone, words) => {
    try {
      read(cron, timezone);
      expect.unreachable();
    } catch (error) {
      expect(isFailure(error, "schedule.bad_cron")).toBe(true);
      expect((error as Error).message).toMatch(words);
    }
  });

  test.each([
    ["* * * * *", false],
    ["@hourly", false],
    ["30 * * * * *", false],
    ["2030-12-24T18:00:00", false],
    ["* * * * * *", true],
    ["0,30 * * * * *", true],
    ["*/10 0 0 1 1 *", true],
    ["  */10 0 0 1 1 * 2030 ", true],
  ])("%s within one minute: %s", (cron, within) => expect(isWithinMinute(cron)).toBe(within));
});

test("a daemon that starts does not load it", () => {
  const program = `import { registerHooks } from "node:module";
    const seen = [];
    registerHooks({ resolve: (name, context, next) => { const found = next(name, context); seen.push(found.url); return found; } });
    await import("./src/daemon/daemon.ts");
    console.log(JSON.stringify(seen));`;
  const cwd = new URL("../../..", import.meta.url).pathname;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd, encoding: "utf8" });
  expect(stderr).toBe("");
  const loaded = JSON.parse(stdout) as string[];
  expect(loaded.some((url) => url.endsWith("records/schedules/cron-rule.ts"))).toBe(true);
  expect(loaded.filter((url) => url.includes("node_modules/croner"))).toEqual([]);
});
