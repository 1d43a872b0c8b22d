/** The password of a database may hold any sign, also ones that should have been encoded: the last @ ends it. */
const BEFORE_HOST = /^(postgres(?:ql)?:\/\/[^:/@?#]*:(?=.*@)|[a-z][a-z0-9+.-]*:\/\/[^:/@?#]*:(?=[^/?#]*@))(.*)@/is;
const IN_QUERY = /([?&](?:ssl)?password=)([^&#]+)/gi;

/** The passwords in an address, as written and as they are. One that says no more than the user's name or the protocol hides nothing. */
export function passwordsIn(address: string): string[] {
  const [, before = "", password = ""] = BEFORE_HOST.exec(address) ?? [];
  const isTold = before.split(/:\/\/|:/).includes(password);
  const written = [isTold ? "" : password, ...[...address.matchAll(IN_QUERY)].map((found) => found[2] ?? "")];
  return [...new Set(written.flatMap((one) => (one === "" ? [] : [one, decoded(one)])))];
}

export function withoutPasswords(address: string): string {
  return address.replace(BEFORE_HOST, "$1[secret]@").replace(IN_QUERY, "$1[secret]");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
