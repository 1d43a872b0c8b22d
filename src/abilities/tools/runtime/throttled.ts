const EVERY_MS = 100;
const MAX_PIECE = 4_000;
const MAX_ALL = 200_000;

/** Output for whoever watches: a few pieces a second, and not without end, however much a program says. */
export function throttled(tell: (text: string) => void): { add(text: string): void; end(): void } {
  let waiting = "";
  let told = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting === "" || told >= MAX_ALL) return;
    const piece = waiting.length <= MAX_PIECE ? waiting : `…${waiting.slice(-MAX_PIECE)}`;
    waiting = "";
    told += piece.length;
    tell(piece);
  };
  return {
    add: (text) => {
      waiting = (waiting + text).slice(-MAX_PIECE - 1);
      timer ??= setTimeout(flush, EVERY_MS);
    },
    end: flush,
  };
}
