import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Home, type RunningDaemon } from "./guildhall.ts";
import { Agent, guestToken } from "./mcp-clients.ts";

let home: Home;
let daemon: RunningDaemon;

beforeAll(async () => {
  home = new Home("server: { port: 0 }\nagents: { main: { default: true }, quiet: { tools: minimal } }\n");
  daemon = await home.start();
});
afterAll(() => home.remove());

const json = async (path: string, body?: unknown) => {
  const response = await daemon.fetch(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, body: JSON.parse(await response.text()) };
};
/** A turn has been told of it, and its commit has acked it. */
const isDone = (id: string) => vi.waitFor(async () => expect((await json(`/api/mail/${id}`)).body.state).toBe("acked"), 20_000);

test("mail that wakes starts a turn of an idle agent, sent over HTTP, from the command line and through MCP alike", async () => {
  const sent = await json("/api/mail", { to: "main", type: "note", content: "over HTTP", wake: true });
  expect(sent).toMatchObject({ status: 201, body: { id: expect.any(String), woken: "started" } });
  await isDone(sent.body.id);
  const { stdout } = await home.run(["mail", "send", "main", "from the command line", "--wake", "--json"]);
  const printed = JSON.parse(stdout);
  expect(printed).toMatchObject({ woken: expect.stringMatching(/started|waiting/) });
  await isDone(printed.id);
  const guest = await Agent.http(daemon, (await guestToken(daemon, "eve")).token);
  const { data, text } = await guest.call("mail_send", { to: "main", content: "through MCP", wake: true });
  expect(text).toContain("turn");
  await isDone(data.id);
  expect((await json(`/api/mail/${data.id}`)).body).toMatchObject({ from: "eve", label: "external" });
  await guest.close();
  const sessions = (await json("/api/sessions?agent=main")).body;
  expect(JSON.stringify(sessions)).toContain("agent:main:internal:dm:mail");
});

test("an agent that may not read mail is not woken, and the sender is told", async () => {
  const { body } = await json("/api/mail", { to: "quiet", type: "note", content: 1, wake: true });
  expect(body.woken).toBe("nobody");
  expect((await json(`/api/mail/${body.id}`)).body.state).toBe("pending");
});
