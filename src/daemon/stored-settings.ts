import { Failure, isFailure } from "../kernel/failure.ts";
import type { ConfigRevisions, NewestRevision } from "../records/agents/config-revisions.ts";
import { type ConfigProblem, configFailure } from "../settings/config-problem.ts";
import type { Settings } from "../settings/load-settings.ts";
import type { OwnSections } from "../settings/own-sections.ts";

/** Reads a text with the names and folders of this machine. */
export type ReadText = (text: string, own: OwnSections) => Promise<Settings>;

/**
 * What another node has applied, as it is here. Refused with `config.invalid` where it would not be the same: a name that is not set on this
 * machine must not take out an agent that answers elsewhere, for then it would hang on the node whether a message is taken.
 */
export async function storedSettings(
  revisions: ConfigRevisions,
  read: ReadText,
  revision: NewestRevision,
  own: OwnSections,
): Promise<Settings> {
  const { text, quarantined } = await revisions.textOf(revision);
  const { number, node } = revision;
  if (text === null)
    throw new Failure(
      "config.invalid",
      `in the text of revision ${number}, of node ${node}, a secret is written, so that it is not shared`,
      {
        hint: "Write $" + "{NAME} there, and NAME=… into .env of every node; or put the same file on this one.",
      },
    );
  try {
    const settings = await read(text, own);
    const broken = [...settings.quarantined].flatMap(([id, problems]) => (quarantined.includes(id) ? [] : problems));
    if (broken.length > 0) throw configFailure(broken);
    return settings;
  } catch (error) {
    const problems = isFailure(error, "config.invalid") ? (error.details.problems as readonly ConfigProblem[] | undefined) : undefined;
    // Its lines are not those of the file that stands here.
    throw problems
      ? configFailure(
          problems.map((problem) => ({ ...problem, file: `revision ${number}` })),
          error,
        )
      : error;
  }
}

export function ownSectionsOf({ config }: Settings): OwnSections {
  return { server: config.server, store: config.store };
}
