import { expect, test } from "vitest";
import { isPublicAddress } from "./public-address.ts";

const PUBLIC = [
  "8.8.8.8",
  "1.1.1.1",
  "100.63.255.255",
  "172.32.0.1",
  "2606:4700:4700::1111",
  "2a00:1450::200e",
  "::ffff:8.8.8.8",
  "64:ff9b::808:808",
];

const OTHER = [
  "127.0.0.1",
  "127.255.255.254",
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "169.254.169.254",
  "168.63.129.16",
  "100.64.0.1",
  "100.100.100.200",
  "192.0.0.192",
  "192.0.2.1",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::127.0.0.1",
  "::7f00:1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:10.0.0.1",
  "::ffff:a9fe:a9fe",
  "0:0:0:0:0:ffff:169.254.169.254",
  "::ffff:0:127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b:1::808:808",
  "2002:7f00:1::",
  "2002:a9fe:a9fe::1",
  "2001::1",
  "2001:db8::1",
  "3fff::1",
  "fe80::1",
  "fe80::1%eth0",
  "2606:4700:4700::1111%eth0",
  "fec0::1",
  "fc00::1",
  "fd00:ec2::254",
  "ff02::1",
  "100::1",
  "5f00::1",
  "4000::1",
];

test("addresses of the public internet are public", () => {
  for (const address of PUBLIC) expect(isPublicAddress(address), address).toBe(true);
});

test("addresses of this machine, private networks, links, metadata services and reserved ranges are not, however they are wrapped", () => {
  for (const address of OTHER) expect(isPublicAddress(address), address).toBe(false);
});

test("an address that is not written as a resolver writes it is not public", () => {
  for (const address of [
    "2130706433",
    "134744072",
    "0x08.8.8.8",
    "010.8.8.8",
    "8.8.2056",
    "8.8.8.8 ",
    "[::1]",
    "localhost",
    "",
    "8.8.8.8.8",
  ])
    expect(isPublicAddress(address), address).toBe(false);
});
