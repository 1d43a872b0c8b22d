import type { HttpClient } from "./http-client.ts";
export declare function sendMail(client: HttpClient): Promise<void>;
/** Receives a few and acks most: some plainly, some together with a write. The rest comes again. */
export declare function receiveMail(client: HttpClient): Promise<void>;
