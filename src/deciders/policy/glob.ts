/** Whether a text is what a wildcard stands for: `*` is any run of characters. Linear in practice and never exponential, whatever is written. */
export function globMatches(glob: string, text: string): boolean {
  let at = 0;
  let star = -1;
  let retry = 0;
  let index = 0;
  while (index < text.length) {
    if (glob[at] === "*") {
      star = at++;
      retry = index;
    } else if (at < glob.length && glob[at] === text[index]) {
      at++;
      index++;
    } else if (star >= 0) {
      at = star + 1;
      index = ++retry;
    } else return false;
  }
  while (glob[at] === "*") at++;
  return at === glob.length;
}

/** Whether some text matches both wildcards. */
export function globsOverlap(one: string, other: string): boolean {
  // row[j]: whether what is left of `one` and other.slice(j) have a text in common.
  let below: boolean[] = [];
  for (let i = one.length; i >= 0; i--) {
    const row: boolean[] = [];
    for (let j = other.length; j >= 0; j--) {
      const [a, b] = [one[i], other[j]];
      if (a === undefined && b === undefined) row[j] = true;
      else if (a === "*") row[j] = (below[j] ?? false) || (b !== undefined && (row[j + 1] ?? false));
      else if (b === "*") row[j] = (row[j + 1] ?? false) || (a !== undefined && (below[j] ?? false));
      else row[j] = a !== undefined && a === b && (below[j + 1] ?? false);
    }
    below = row;
  }
  return below[0] ?? false;
}
