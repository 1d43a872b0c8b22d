import type { MailList, MailQuery } from "../../contract/mail.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { Reads } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import { boxesOf, MAIL_COLUMNS_WITHOUT_CONTENT, type MailRow, mailOf } from "./mail-rows.ts";

/** The newest first, a part at a time. */
export async function listMail(reads: Reads, caller: Caller, { box, state, before, limit }: MailQuery): Promise<MailList> {
  const rows = await reads.all<MailRow & { now: number }>`select ${MAIL_COLUMNS_WITHOUT_CONTENT}, now_ms() as now from mail
    where ${inBox(caller, box)} ${state === undefined ? code("") : sql`and state in ${list(state === "pending" ? ["pending", "delayed"] : [state])}`}
      ${before === undefined ? code("") : sql`and seq < ${before}`} order by seq desc limit ${limit}`;
  return {
    mail: rows.map((row) => {
      const { content: _left, ...rest } = mailOf(row, row.now);
      return rest;
    }),
    next: rows.length === limit ? (rows.at(-1)?.seq ?? null) : null,
  };
}

function inBox(caller: Caller, box: MailQuery["box"]): SqlFragment {
  switch (box) {
    case "in":
      return sql`recipient in ${list(boxesOf(caller))}`;
    case "sent":
      return sql`sender = ${caller.name}`;
    case "readable":
      return sql`seq in (select seq from mail_readers where reader in ${list(boxesOf(caller))})`;
    case "all":
      return code("true");
  }
}
