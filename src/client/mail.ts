import {
  type Mail,
  type MailDraft,
  type MailFilter,
  type MailList,
  type MailReceiveRequest,
  mail,
  mailList,
  type ReceivedMail,
  receivedList,
  type SentMail,
  type SettledMail,
  sentMail,
  settledMail,
} from "../contract/mail.ts";
import type { ApiClient } from "./api-client.ts";

/** Mail, as the token's identity. */
export class MailClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  send(draft: MailDraft): Promise<SentMail> {
    return this.#api.post(sentMail, "/api/mail", draft);
  }

  async receive(request: MailReceiveRequest = {}): Promise<ReceivedMail[]> {
    return (await this.#api.post(receivedList, "/api/mail/receive", request)).mail;
  }

  ack(id: string, fence: number): Promise<SettledMail> {
    return this.#api.post(settledMail, `/api/mail/${encodeURIComponent(id)}/ack`, { fence });
  }

  nack(id: string, fence: number, delayMs = 0): Promise<SettledMail> {
    return this.#api.post(settledMail, `/api/mail/${encodeURIComponent(id)}/nack`, { fence, delay_ms: delayMs });
  }

  read(id: string): Promise<Mail> {
    return this.#api.get(mail, `/api/mail/${encodeURIComponent(id)}`);
  }

  list(filter: MailFilter = {}): Promise<MailList> {
    return this.#api.get(mailList, "/api/mail", filter);
  }
}
