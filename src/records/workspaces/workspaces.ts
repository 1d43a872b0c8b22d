import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { PlaceScope, SharedPath } from "../../contract/config.ts";
import { SEEN_SHARED, SEEN_WORKSPACE } from "../../contract/tools.ts";
import type { Clock } from "../../kernel/clock.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import { type Place, placeFolder } from "../../kernel/place-folder.ts";
import { type SharedFolder, type Surroundings, sharedFolder } from "../../settings/shared-paths.ts";
import { Directory, during } from "./directory.ts";
import { type JailKind, jailKind } from "./jail-kind.ts";
import { codeOf } from "./refusals.ts";
import { type Root, SHARED, WORKSPACE_LIMITS, type WorkspaceLimits } from "./roots.ts";
import type { SharedMount } from "./sandbox/sandbox.ts";
import { openShared } from "./shared-root.ts";
import { Turnstile } from "./turnstile.ts";
import { Workspace } from "./workspace.ts";

/** What of an agent decides about its files. */
export interface WorkspaceOwner {
  readonly id: string;
  readonly workspaceScope: PlaceScope;
  readonly sharedPaths: readonly SharedPath[];
}

export interface WorkspacesOptions {
  readonly clock: Clock;
  readonly newId: NewId;
  readonly limits?: WorkspaceLimits;
  readonly kind?: JailKind;
}

/** A verb holds a few handles and at most one file's content; more at a time would only wait for each other. */
const VERBS_AT_A_TIME = 32;

/** The workspaces of all agents of one home. */
export class Workspaces {
  readonly #kind: JailKind;
  readonly #home: string;
  readonly #identity: string;
  readonly #options: WorkspacesOptions;
  readonly #turnstile = new Turnstile(VERBS_AT_A_TIME);

  private constructor(kind: JailKind, home: string, identity: string, options: WorkspacesOptions) {
    this.#kind = kind;
    this.#home = home;
    this.#identity = identity;
    this.#options = options;
  }

  /** The home is the operator's, and may be reached through links; where it lies now is where it stays. */
  static async of(home: string, options: WorkspacesOptions): Promise<Workspaces> {
    const kind = options.kind ?? jailKind();
    if (kind === "none")
      throw new Failure(
        "workspace.unavailable",
        "files cannot be opened safely on this system: /proc/self/fd is missing, or it is neither Linux nor macOS",
      );
    await mkdir(home, { recursive: true, mode: 0o700 });
    const real = await realpath(home);
    return during(Directory.at(kind, real), async ({ identity }) => new Workspaces(kind, real, identity, options));
  }

  /** Its real place. */
  get home(): string {
    return this.#home;
  }

  get kind(): JailKind {
    return this.#kind;
  }

  /** The names from the home to an agent's workspace: its one, or that of the place where it is spoken to. */
  static folderOf({ id, workspaceScope }: Pick<WorkspaceOwner, "id" | "workspaceScope">, place: Place | null): readonly string[] {
    if (workspaceScope === "agent" || place === null) return ["agents", id, "workspace"];
    return ["agents", id, "workspaces", placeFolder(place, workspaceScope)];
  }

  /** Its folders are made when they are first used. */
  workspace(owner: WorkspaceOwner, place: Place | null, around: Pick<Surroundings, "configFile">): Workspace {
    const { limits = WORKSPACE_LIMITS, clock, newId } = this.#options;
    const surroundings = { home: this.#home, configFile: around.configFile };
    const names = Workspaces.folderOf(owner, place);
    const own: Root = {
      place: join(this.#home, ...names),
      seenAs: SEEN_WORKSPACE,
      writable: true,
      secluded: true,
      open: () => this.#openOwn(names),
    };
    const shared = owner.sharedPaths.map((path) => sharedFolder(path, surroundings));
    return new Workspace({
      own,
      shared: new Map(shared.map((folder) => [folder.name, this.#sharedRoot(folder, owner.id, surroundings)])),
      limits,
      clock,
      newId,
      turnstile: this.#turnstile,
    });
  }

  /**
   * Where the folders really lie, for programs that get them whole. A shared folder that cannot be used is left out. In a sandbox shared folders
   * lie beside the workspace; a link in it leads there, which says nothing outside and which the jail does not follow.
   */
  async places(
    owner: WorkspaceOwner,
    place: Place | null,
    around: Pick<Surroundings, "configFile">,
    linksShared: boolean,
  ): Promise<{ readonly own: string; readonly shared: readonly SharedMount[] }> {
    const surroundings = { home: this.#home, configFile: around.configFile };
    const folders = owner.sharedPaths.map((path) => sharedFolder(path, surroundings));
    const shared = await Promise.all(
      folders.map(async (folder): Promise<SharedMount[]> => {
        const { name, writable } = folder;
        const opened = this.#sharedRoot(folder, owner.id, surroundings).open();
        return during(opened, async (held) => [{ name, path: await held.realPath(), identity: held.identity, writable }]).catch(() => []);
      }),
    );
    const own = await during(this.#openOwn(Workspaces.folderOf(owner, place)), async (held) => {
      if (linksShared) await linkShared(held, folders.length > 0);
      return held.realPath();
    });
    return { own, shared: shared.flat() };
  }

  /** An agent whose folder is a link has no workspace: the link would decide where its files are. */
  async #openOwn(names: readonly string[]): Promise<Directory> {
    const home = Directory.atOnce(this.#kind, this.#home);
    if (home.identity !== this.#identity) {
      await home.close();
      throw new Failure("workspace.unavailable", "the home was replaced while the daemon ran; start it again");
    }
    return during(Promise.resolve(home), () => openNames(home, names));
  }

  #sharedRoot(folder: SharedFolder, agent: string, around: Surroundings): Root {
    return {
      place: folder.path,
      seenAs: `${SEEN_SHARED}/${folder.name}`,
      writable: folder.writable,
      secluded: false,
      open: () => openShared(this.#kind, folder, agent, around),
    };
  }
}

async function linkShared(own: Directory, wanted: boolean): Promise<void> {
  const words = await own.linkText(SHARED).catch(() => undefined);
  // What the agent itself has put there stays.
  if (wanted && words === undefined) await own.link(SHARED, SEEN_SHARED).catch(() => {});
  if (!wanted && words === SEEN_SHARED) await own.unlink(SHARED).catch(() => {});
}

/** Through no link at all, and made where it is missing. */
async function openNames(above: Directory, [name = ".", ...names]: readonly string[]): Promise<Directory> {
  // The last is the agent's: its programs could make it a place that answers late, for which nobody else should wait.
  if (names.length === 0) return openOrMake(above, name, () => above.directoryUnlessMounted(name));
  return during(
    openOrMake(above, name, async () => above.directoryAtOnce(name)),
    (below) => openNames(below, names),
  );
}

async function openOrMake(above: Directory, name: string, open: () => Promise<Directory>): Promise<Directory> {
  try {
    return await open();
  } catch (error) {
    if (["ENOTDIR", "ELOOP"].includes(codeOf(error)))
      throw new Failure("workspace.unavailable", `"${name}" on the way to the workspace is a link or a file, not a folder`, {
        hint: "Put a real folder in its place; folders elsewhere are for shared_paths.",
      });
    if (codeOf(error) !== "ENOENT") throw error;
  }
  await above.make(name, 0o700).catch((error: unknown) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
  return above.directory(name);
}
