import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { LAUNCHER } from "../launcher.ts";
import { postgresPlace } from "../stores.ts";
import { Home } from "./guildhall.ts";

/** The same program under another version. */
function buildOf(version: string): string {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-version-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const from = dirname(dirname(LAUNCHER));
  for (const part of ["bin", "src", "dist"])
    if (existsSync(join(from, part))) cpSync(join(from, part), join(folder, part), { recursive: true });
  const { type, dependencies } = JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "guildhall", version, type, dependencies }));
  symlinkSync(join(from, "node_modules"), join(folder, "node_modules"));
  return join(folder, "bin/guildhall.js");
}

test("two versions side by side: both answer, the older one starts again beside what the newer one added, and not beside what it changed", async () => {
  const place = postgresPlace();
  onTestFinished(() => place.remove());
  await (await place.open()).close();
  const config = `store: ${JSON.stringify(place.location)}\n`;
  const older = new Home(config, buildOf("0.2.98"));
  const newer = new Home(config, buildOf("0.2.99"));
  onTestFinished(() => older.remove());
  onTestFinished(() => newer.remove());
  const [old, young] = await Promise.all([older.start(), newer.start()]);
  const versions = await place.tamper("select version from nodes order by version");
  expect(versions.map(({ version }) => version)).toEqual(["0.2.98", "0.2.99"]);
  for (const daemon of [old, young])
    expect(await daemon.finished((await daemon.send({ id: daemon.url })).runId)).toMatchObject({ status: "completed" });

  // What a later version would have left: a statement that old programs need not know.
  await place.tamper("insert into migrations (version, statement, name, checksum, at, is_additive) values (998, 0, 'added', 'x', 1, 1)");
  await old.kill("SIGKILL");
  const again = await older.start();
  const answered = await again.finished((await again.send({ id: "again" })).runId);
  expect(answered.status).toBe("completed");
  expect((await again.kill("SIGTERM")).stderr).toContain("a newer program has added to this database");

  await place.tamper("insert into migrations (version, statement, name, checksum, at, is_additive) values (999, 0, 'changed', 'x', 1, 0)");
  const refused = await older.run(["start", "--port", "0"]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("[store.newer_schema]") });
  expect((await young.fetch("/readyz")).status).toBe(200);
}, 60_000);
