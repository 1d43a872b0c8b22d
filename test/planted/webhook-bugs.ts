import type { PlantedBug } from "./bugs.ts";

const SIGNATURE = "src/edges/channels/webhook/signature.ts";
const WEBHOOK = "src/edges/channels/webhook/webhook-channel.ts";
const WHATSAPP = "src/edges/channels/whatsapp/whatsapp-channel.ts";
const EVENTS = "src/edges/channels/whatsapp/posted-events.ts";
const signed = { tests: ["test/security/webhooks.test.ts"] };
const webhook = { tests: ["test/scenarios/webhook-channel.test.ts"] };
const whatsapp = { tests: ["test/scenarios/whatsapp-channel.test.ts"] };

export const WEBHOOK_BUGS: readonly PlantedBug[] = [
  {
    name: "a signed post is taken however old it is",
    file: SIGNATURE,
    from: "if (Math.abs(now / 1_000 - Number(timestamp)) > TOLERANCE_S)",
    to: "if (Number(timestamp) - now / 1_000 > TOLERANCE_S)",
    ...signed,
    filter: "webhook:",
  },
  {
    name: "the beginning of a webhook's signature is enough",
    file: SIGNATURE,
    from: "given.length === expected.length && timingSafeEqual(given, expected)",
    to: "timingSafeEqual(given, expected.subarray(0, given.length))",
    ...signed,
    filter: "webhook:",
  },
  {
    name: "an empty signature of WhatsApp fits everything",
    file: WHATSAPP,
    from: "if (given.length !== expected.length || !timingSafeEqual(given, expected))",
    to: "if (given.length > 0 && !timingSafeEqual(given, expected))",
    ...signed,
    filter: "WhatsApp: a wrong",
  },
  {
    name: "Meta's question is answered to anybody",
    file: WHATSAPP,
    from: "challenge === null || !isOurs)",
    to: 'challenge === null || (!isOurs && challenge === ""))',
    ...signed,
    filter: "Meta's question",
  },
  {
    name: "what is posted is looked into before its signature was checked",
    file: "src/edges/api/hooks-routes.ts",
    from: "isSigned: true,",
    to: "isSigned: false,",
    ...signed,
    filter: "not even looked into",
  },
  {
    name: "messages to another phone number are taken for ours",
    file: EVENTS,
    from: ".filter(({ metadata }) => metadata.phone_number_id === phoneNumberId)",
    to: ".filter(({ metadata }) => metadata.phone_number_id !== phoneNumberId || metadata.phone_number_id !== phoneNumberId.slice(1))",
    ...whatsapp,
    filter: "one post",
  },
  {
    name: "what somebody passes on is taken for their own words",
    file: EVENTS,
    from: 'text: isForwarded ? "" :',
    to: 'text: isForwarded && said === "" ? "" :',
    ...whatsapp,
    filter: "people write",
  },
  {
    name: "a token that WhatsApp repeats is shown to whoever looks",
    file: "src/edges/channels/whatsapp/graph.ts",
    from: '.replaceAll(token, "[token]")',
    to: '.replaceAll("EAA", "[token]")',
    ...whatsapp,
    filter: "a token that has ended",
  },
  {
    name: "a reply to a webhook has another id each time it is sent",
    file: WEBHOOK,
    from: "...signed(key, message.key, clock.now(), body)",
    to: "...signed(key, `${message.key}-${clock.now()}`, clock.now(), body)",
    ...webhook,
    filter: "what the receiver says",
  },
  {
    name: "replies nobody can be posted wait to be delivered",
    file: "src/edges/channels/channel-hub.ts",
    from: "this.#pluginOf(account)?.sends?.(account) !== false",
    to: "this.#pluginOf(account)?.platform !== undefined",
    ...webhook,
    filter: "without an address",
  },
];
