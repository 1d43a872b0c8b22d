import { OWN_HOUSE } from "../../contract/wire.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { PartSource, TurnFacts } from "../open-turn.ts";

/** Asking for them in a language costs more than everything else that a turn begins with. */
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const DAY_MS = 86_400_000;

/** The day, and where the conversation takes place. The hour is not told: with it, no provider could keep what comes after. */
export function placeSource(clock: Clock): PartSource {
  let today = { number: Number.NaN, words: "" };
  return async (facts) => {
    const number = Math.floor(clock.now() / DAY_MS);
    if (number !== today.number) today = { number, words: dayOf(number * DAY_MS) };
    return { name: "place", text: `Today is ${today.words} (UTC). ${whereOf(facts)}` };
  };
}

function dayOf(at: number): string {
  const day = new Date(at);
  return `${WEEKDAYS[day.getUTCDay()]}, ${day.toISOString().slice(0, 10)}`;
}

function whereOf({ run, revision }: TurnFacts): string {
  const { platform, chatType, chat, topic, peer } = run.address;
  // A turn that mail has started: see acts/wake-agent.ts.
  if (platform === OWN_HOUSE) return "Nobody speaks with you now: this turn was started by the gateway.";
  const on = `on ${named(platform)}`;
  if (chatType === "dm") {
    const owner = revision.settings.config.owners.includes(`${platform}:${peer}`) ? ", an owner of this house" : "";
    return `You speak in private with ${named(peer)}${owner}, ${on}.`;
  }
  const where = `the ${chatType} ${named(chat)}${topic === null ? "" : `, topic ${named(topic)}`}`;
  return `You speak in ${where}, ${on}. Everybody there reads your answer.`;
}

/** Ids and names of platforms are others' words: on one line, and seen to be names. */
function named(name: string): string {
  return JSON.stringify(name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ").slice(0, 100));
}
