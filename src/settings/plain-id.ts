/** Why a text cannot be an agent's id: a letter that only looks plain is named, since nobody sees the difference. */
export function idInWords(id: string, otherwise: string): { readonly why: string; readonly fix: string } {
  const strange = [...id].find((character) => character > "~" || character < " ");
  if (strange !== undefined) {
    const code = `U+${(strange.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}`;
    const sign = /\p{L}|\p{N}|\p{P}|\p{S}/u.test(strange) ? `"${strange}" (${code})` : code;
    return {
      why: `the character ${sign} in the id is not a plain one`,
      fix: "Type the id again with the letters a to z, digits, _ and -.",
    };
  }
  const plain = id
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^[_-]+/, "")
    .slice(0, 64);
  return { why: otherwise, fix: plain === "" || plain === id ? "Choose another id." : `Write ${plain} instead.` };
}
