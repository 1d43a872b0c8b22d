import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CHECKOUT = new URL("..", import.meta.url).pathname;
const VARIABLE = "GUILDHALL_TEST_LAUNCHER";

/** What starts the program in the tests: the package that was built for them, or the source where nothing was built. */
export const LAUNCHER = process.env[VARIABLE] ?? join(CHECKOUT, "bin/guildhall.js");

/** What `npm publish` would send but its types, with nothing of the source beside it. */
function buildPackage(): string {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-package-"));
  // Some tests run it as somebody else.
  chmodSync(folder, 0o755);
  execFileSync(process.execPath, [join(CHECKOUT, "tools/build.mjs"), join(folder, "dist"), "--no-types"]);
  for (const file of ["bin", "package.json"]) cpSync(join(CHECKOUT, file), join(folder, file), { recursive: true });
  symlinkSync(join(CHECKOUT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** The tests start hundreds of processes, and the built program starts in two thirds of the time. */
export function buildForTests(): () => void {
  if (process.env[VARIABLE]) return () => {};
  const folder = buildPackage();
  process.env[VARIABLE] = join(folder, "bin/guildhall.js");
  return () => {
    delete process.env[VARIABLE];
    rmSync(folder, { recursive: true, force: true });
  };
}
