import { lstat, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAME = /^guildhall-sandbox-(\d+)-/;
/** What programs look up of users and hosts; nobody of this machine is in it. */
const FILES = {
  passwd: "agent:x:1000:1000:agent:/workspace:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
  group: "agent:x:1000:\nnogroup:x:65534:\n",
  hosts: "127.0.0.1 localhost sandbox\n::1 localhost\n",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
};

/** A folder for the files and sockets of sandboxes; not in the home, since the path of a socket must be short. */
export async function scratchFolder(): Promise<string> {
  const above = tmpdir().length > 60 ? "/tmp" : tmpdir();
  await removeAbandoned(above);
  const folder = await mkdtemp(join(above, `guildhall-sandbox-${process.pid}-`));
  await Promise.all(Object.entries(FILES).map(([name, text]) => writeFile(join(folder, name), text, { mode: 0o644 })));
  return folder;
}

/** Of processes that were killed. Others' are left: to remove them as the administrator, while they swap folders for links, is no good. */
async function removeAbandoned(above: string): Promise<void> {
  for (const name of await readdir(above).catch(() => [])) {
    const pid = Number(NAME.exec(name)?.[1]);
    if (pid > 0 && !isAlive(pid) && (await isOurs(join(above, name))))
      await rm(join(above, name), { recursive: true, force: true }).catch(() => {});
  }
}

async function isOurs(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.isDirectory() === true && stats.uid === process.getuid?.();
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
