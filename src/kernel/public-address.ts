import ipaddr from "ipaddr.js";

/** Public by their number, and yet answered by the machine's own host with what concerns it alone. */
const METADATA: ReadonlySet<string> = new Set(["168.63.129.16"]);
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");
const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");

/**
 * Whether an address is one of the public internet: not of this machine, of a private network, of a link, nor of anything that is
 * kept for a purpose. For addresses as a resolver writes them; any other way to write one (octal, hexadecimal, with a zone) is not
 * public, because programs read it differently.
 */
export function isPublicAddress(address: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return isPublicV4(ipaddr.IPv4.parse(address));
  if (address.includes("%") || !ipaddr.IPv6.isValid(address)) return false;
  const long = ipaddr.IPv6.parse(address);
  if (long.isIPv4MappedAddress()) return isPublicV4(long.toIPv4Address());
  // Where a network has no IPv4, its resolver puts the IPv4 address of a host behind this beginning.
  if (long.match(NAT64)) return isPublicV4(new ipaddr.IPv4(long.toByteArray().slice(12)));
  return long.match(GLOBAL_UNICAST) && long.range() === "unicast";
}

function isPublicV4(short: ipaddr.IPv4): boolean {
  return short.range() === "unicast" && !METADATA.has(short.toString());
}
