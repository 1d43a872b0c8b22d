import { type MailParts, sendMail } from "../../acts/send-mail.ts";
import { lookAtMail, takeMail } from "../../acts/take-mail.ts";
import {
  mail,
  mailAck,
  mailList,
  mailNack,
  mailQuery,
  mailReceive,
  newMail,
  receivedList,
  sentMail,
  settledMail,
} from "../../contract/mail.ts";
import { LOOKERS, MEMBERS, type Route, route } from "./route.ts";

export function mailRoutes(parts: MailParts): Route[] {
  const { mailbox } = parts;
  return [
    route({
      method: "POST",
      path: "/api/mail",
      summary: "Send a mail to an identity or a role; with `wake` a turn of the agent that receives it is started",
      allow: MEMBERS,
      body: newMail,
      answers: { 201: sentMail },
      handle: async ({ caller, body, record }) => ({
        status: 201,
        body: await sendMail(parts, caller, body, (tx, sent) => record(tx, { status: 201, body: sent })),
      }),
    }),
    route({
      method: "GET",
      path: "/api/mail",
      summary: "Mail one may receive, has sent or may read, the newest first, without contents",
      allow: LOOKERS,
      query: mailQuery,
      answers: { 200: mailList },
      handle: async ({ caller, query }) => ({ status: 200, body: await mailbox.list(caller, query) }),
    }),
    route({
      method: "POST",
      path: "/api/mail/receive",
      summary: "Take mail for a time; what is not acked by then comes again",
      allow: MEMBERS,
      body: mailReceive,
      answers: { 200: receivedList },
      handle: async ({ caller, body, signal, record }) => ({
        status: 200,
        body: {
          mail: await takeMail(parts, caller, body, {
            signal: signal(),
            record: (tx, received) => record(tx, { status: 200, body: { mail: [...received] } }),
          }),
        },
      }),
    }),
    route({
      method: "GET",
      path: "/api/mail/:id",
      summary: "How a mail stands: for its sender, recipient and readers",
      allow: LOOKERS,
      answers: { 200: mail },
      handle: async ({ caller, params }) => ({ status: 200, body: await lookAtMail(parts, caller, params.id) }),
    }),
    route({
      method: "POST",
      path: "/api/mail/:id/ack",
      summary: "Say that a mail is done with",
      allow: MEMBERS,
      body: mailAck,
      answers: { 200: settledMail },
      handle: ({ caller, params, body, transact }) =>
        transact("ack mail", async (tx) => {
          await mailbox.ackIn(tx, caller, params.id, body.fence);
          return { status: 200, body: { id: params.id, state: "acked" } };
        }),
    }),
    route({
      method: "POST",
      path: "/api/mail/:id/nack",
      summary: "Give a mail back, to come again after a delay; after the fifth receipt it is dead",
      allow: MEMBERS,
      body: mailNack,
      answers: { 200: settledMail },
      handle: ({ caller, params, body, transact }) =>
        transact("nack mail", async (tx) => ({
          status: 200,
          body: { id: params.id, state: await mailbox.nackIn(tx, caller, params.id, body.fence, body.delay_ms) },
        })),
    }),
  ];
}
