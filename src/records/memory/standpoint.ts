import type { PlaceScope } from "../../contract/config.ts";
import type { Note } from "../../contract/memory.ts";
import { type Place, shortName } from "../../kernel/place-folder.ts";
import type { Scope } from "../../kernel/scope.ts";

export type Circle = Note["circle"];

/** The conversation from which notes are saved and looked for. */
export interface Standpoint {
  readonly agent: string;
  /** What shares a memory, by the config of this moment. */
  readonly scope: PlaceScope;
  readonly place: Place;
  /** Who speaks, as the platform knows them. */
  readonly person: string;
  /** All ids of that person; `all`: private chats are one conversation here, whoever speaks. */
  readonly persons: readonly string[] | "all";
  /** Who hears the answer: `private`, this person; `personal`, a group in which each has a conversation; `shared`, everybody. */
  readonly heard: "private" | "personal" | "shared";
}

/** What is said in private is not found where others hear it; what is said before others is. */
const FOUND_WHERE: Readonly<Record<Standpoint["heard"], readonly Circle[]>> = {
  private: ["all", "private", "personal"],
  personal: ["all", "personal"],
  shared: ["all"],
};

export function circleOf({ heard }: Standpoint): Circle {
  return heard === "shared" ? "all" : heard;
}

/** Where a note lies: always with its whole place, so that a config with another scope finds what was saved under the old one. */
export function scopeOfNote(agent: string, circle: Circle, person: string, { platform, account, chat, topic }: Place): Scope {
  return [...ownerScope(agent, circle, person), ...[platform, account, chat].map(shortName), topicName(topic)];
}

/** Where notes are that may be found from here. */
export function scopesFrom(standpoint: Standpoint): Scope[] {
  const { agent, heard, persons, scope } = standpoint;
  const place = placeScope(standpoint);
  return FOUND_WHERE[heard].flatMap((circle): Scope[] => {
    if (circle === "all") return [[...ownerScope(agent, circle, ""), ...place]];
    if (persons === "all" && scope === "agent") return [["agent", agent, circle]];
    const ids = persons === "all" ? [standpoint.person] : persons;
    return ids.map((person) => [...ownerScope(agent, circle, person), ...place]);
  });
}

/** What a new note is counted in: as much as a later search from here could find of its kind. */
export function countedScope(standpoint: Standpoint, circle: Circle): Scope {
  return [...ownerScope(standpoint.agent, circle, circle === "all" ? "" : standpoint.person), ...placeScope(standpoint)];
}

function ownerScope(agent: string, circle: Circle, person: string): Scope {
  return ["agent", agent, circle, circle === "all" ? "" : shortName(person)];
}

function placeScope({ scope, place: { platform, account, chat, topic } }: Standpoint): Scope {
  if (scope === "agent") return [];
  return [...[platform, account, chat].map(shortName), ...(scope === "topic" ? [topicName(topic)] : [])];
}

/** No topic has an empty name. */
function topicName(topic: string | null): string {
  return topic === null ? "" : shortName(topic);
}
