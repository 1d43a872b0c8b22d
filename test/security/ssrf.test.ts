import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { guardedFetch, type Resolve } from "../../src/abilities/tools/web/guarded-fetch.ts";
import { webTools } from "../../src/abilities/tools/web/web-tools.ts";
import { ToolCaller } from "../tool-caller.ts";
import { WebServers } from "../web-servers.ts";

const never = new AbortController().signal;
const servers = new WebServers();
let secret: Awaited<ReturnType<WebServers["start"]>>;

beforeEach(async () => {
  secret = await servers.start((_request, response) => response.end("SECRET"));
});
afterEach(() => servers.stop());

/** A name server of our own: each name has its answers, one after another, the last for ever. */
function names(table: Readonly<Record<string, readonly (readonly string[])[]>>): { resolve: Resolve; asked: string[] } {
  const asked: string[] = [];
  const resolve: Resolve = async (host) => {
    const answers = table[host] ?? [];
    const nth = asked.filter((name) => name === host).length;
    asked.push(host);
    return answers[Math.min(nth, answers.length - 1)] ?? [];
  };
  return { resolve, asked };
}

const fetchGuarded = (url: string, more: Partial<Parameters<typeof guardedFetch>[0]> = {}) =>
  guardedFetch({ url, privateHosts: [], signal: never, timeoutMs: 5_000, ...more });

describe("nothing private is asked (ASI02)", () => {
  const hosts = [
    "127.0.0.1",
    "127.1",
    "0.0.0.0",
    "0",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "127%2e0%2e0%2e1",
    "①②⑦.0.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[fe80::1]",
    "[fd00::1]",
    "169.254.169.254",
    "[::ffff:a9fe:a9fe]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ⓛocalhost",
    "app.localhost",
    "printer.local",
    "metadata.google.internal",
    "intranet",
  ];
  test.each(hosts)("%s", async (host) => {
    const { resolve, asked } = names({});
    await expect(fetchGuarded(`http://${host}:${secret.port}/`, { resolve })).rejects.toMatchObject({ code: "web.refused" });
    expect([asked, secret.connections()]).toEqual([[], 0]);
  });

  test("a public address that is written in another way than everybody writes it", async () => {
    for (const host of ["134744072", "0x08080808", "010.8.8.8", "8.8.2056"])
      await expect(fetchGuarded(`http://${host}/`)).rejects.toMatchObject({ code: "web.refused" });
  });

  test("addresses with a user in them, other protocols, and what is no address", async () => {
    const urls = [
      `http://user@127.0.0.1:${secret.port}/`,
      "http://user:password@example.com/",
      "http://@example.com/",
      "http://example.com@127.0.0.1/",
      "file:///etc/passwd",
      "ftp://example.com/",
      "gopher://127.0.0.1:70/",
      "data:text/html,hello",
      "javascript:alert(1)",
      "blob:http://example.com/x",
      "http:127.0.0.1",
      "//example.com/",
      "/etc/passwd",
      "http://",
      "",
      `http://example.com/${"x".repeat(5_000)}`,
    ];
    for (const url of urls) await expect(fetchGuarded(url), url).rejects.toMatchObject({ code: "web.refused" });
    expect(secret.connections()).toBe(0);
  });

  test("a name that leads to a private address, alone or among public ones", async () => {
    const addresses = [
      ["127.0.0.1"],
      ["8.8.8.8", "127.0.0.1"],
      ["10.0.0.1"],
      ["::1"],
      ["::ffff:127.0.0.1"],
      ["169.254.169.254"],
      ["0x7f.1"],
    ];
    for (const found of addresses) {
      const { resolve } = names({ "evil.example": [found] });
      await expect(fetchGuarded(`http://evil.example:${secret.port}/`, { resolve })).rejects.toMatchObject({ code: "web.refused" });
    }
    expect(secret.connections()).toBe(0);
  });

  test("a name that is public when it is checked and private a moment later: it is looked up once, and that is where the connection goes", async () => {
    const { resolve, asked } = names({ "rebind.example": [["198.41.0.4"], ["127.0.0.1"]] });
    await expect(fetchGuarded(`http://rebind.example:${secret.port}/`, { resolve, timeoutMs: 700 })).rejects.toMatchObject({
      code: expect.stringMatching(/^tool\./),
    });
    expect([asked, secret.connections()]).toEqual([["rebind.example"], 0]);
  });

  // Elsewhere a machine has one loopback address only.
  test.skipIf(process.platform !== "linux")(
    "the connection goes to the checked address whatever the machine's own resolver says",
    async () => {
      const site = await servers.start((_request, response) => response.end("checked"), "127.0.0.2");
      const { resolve, asked } = names({ localhost: [["127.0.0.2"], ["127.0.0.1"]] });
      const answer = await fetchGuarded(`http://localhost:${site.port}/`, { resolve, privateHosts: ["localhost"] });
      expect([Buffer.from(answer.bytes).toString(), asked]).toEqual(["checked", ["localhost"]]);
    },
  );

  describe("redirects are checked like the first address", () => {
    const redirects = async (locations: (port: number) => readonly string[]): Promise<void> => {
      let next = "";
      const site = await servers.start((_request, response) => response.writeHead(302, { location: next }).end());
      const table = names({ "site.example": [["127.0.0.1"]], "evil.example": [["127.0.0.1"]] });
      const { resolve } = table;
      for (const location of locations(secret.port)) {
        next = location;
        const asking = fetchGuarded(`http://site.example:${site.port}/`, { resolve, privateHosts: [`site.example:${site.port}`] });
        await expect(asking, location).rejects.toMatchObject({ code: "web.refused" });
      }
      expect(secret.connections()).toBe(0);
    };

    test("to private addresses, however they are written", () =>
      redirects((port) => [
        `http://127.0.0.1:${port}/`,
        `http://2130706433:${port}/`,
        `http://[::ffff:127.0.0.1]:${port}/`,
        `http://localhost:${port}/`,
        `http://user@127.0.0.1:${port}/`,
        `//127.0.0.1:${port}/`,
        `\\\\127.0.0.1:${port}\\`,
        "http://169.254.169.254/latest/meta-data/",
      ]));

    test("to a name that leads there", () => redirects((port) => [`http://evil.example:${port}/`]));
    test("to another port of a host that is excepted for one port", () => redirects((port) => [`http://site.example:${port}/`]));
    test("to other protocols", () => redirects(() => ["file:///etc/passwd", "gopher://site.example/"]));

    test("and they end", async () => {
      const site = await servers.start((request, response) =>
        response.writeHead(302, { location: `/${Number(request.url?.slice(1) || 0) + 1}` }).end(),
      );
      const { resolve } = names({ "site.example": [["127.0.0.1"]] });
      const asking = fetchGuarded(`http://site.example:${site.port}/`, { resolve, privateHosts: ["site.example"] });
      await expect(asking).rejects.toMatchObject({ code: "tool.failed", message: expect.stringContaining("redirects more than 5 times") });
      expect(site.asked).toHaveLength(6);
    });
  });

  test("the tool refuses the same, and what the operator has excepted it may ask", async () => {
    const caller = (privateHosts: readonly string[]) => new ToolCaller(webTools(), { web: { private_hosts: privateHosts } });
    const url = `http://127.0.0.1:${secret.port}/`;
    await expect(caller([]).call("web_fetch", { url })).rejects.toMatchObject({ code: "web.refused" });
    await expect(caller([`127.0.0.1:${secret.port + 1}`]).call("web_fetch", { url })).rejects.toMatchObject({ code: "web.refused" });
    for (const host of ["127.0.0.1", `127.0.0.1:${secret.port}`])
      expect(await caller([host]).call("web_fetch", { url })).toMatchObject({
        output: expect.stringContaining("SECRET"),
        labels: ["external"],
      });
  });
});
