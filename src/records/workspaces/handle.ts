import { type BigIntStats, closeSync, fstat, fstatSync, open, openSync, readFileSync } from "node:fs";
import { promisify } from "node:util";

const opened = promisify(open);
const statsOf = promisify(fstat);

/**
 * Something that is open only to be looked at, so that closing it waits for nothing. Once it is closed its number may be another
 * agent's: nobody may use it any more.
 */
export class Handle {
  readonly number: number;
  #isOpen = true;

  private constructor(number: number) {
    this.number = number;
  }

  static async open(path: string, flags: number): Promise<Handle> {
    return new Handle(await opened(path, flags));
  }

  static openAtOnce(path: string, flags: number): Handle {
    return new Handle(openSync(path, flags));
  }

  async stat(): Promise<BigIntStats> {
    this.mustBeOpen();
    return statsOf(this.number, { bigint: true });
  }

  statAtOnce(): BigIntStats {
    this.mustBeOpen();
    return fstatSync(this.number, { bigint: true });
  }

  /** Which mount it lies on, as Linux tells it of handles without asking the file system. */
  mountAtOnce(): string | undefined {
    this.mustBeOpen();
    return /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${this.number}`, "latin1"))?.[1];
  }

  mustBeOpen(): void {
    if (!this.#isOpen) throw new Error("this handle is closed already");
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.number);
  }
}
