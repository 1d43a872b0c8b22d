/**
 * System calls that programs of agents do without: kernel keyrings (which know users by their number alone, not by namespace), new
 * namespaces, and parts of the kernel that were the way out of sandboxes before. By the numbers of each processor.
 * Nor may one program change another while it runs: the first process inside could be made to live on when the daemon ends it.
 */
const REFUSED = {
  //    add_key request_key keyctl unshare setns perf_event_open bpf userfaultfd open_by_handle_at ptrace process_vm_writev, then io_uring
  x64: { audit: 0xc000003e, calls: [248, 249, 250, 272, 308, 298, 321, 323, 304, 101, 311, 425, 426, 427] },
  arm64: { audit: 0xc00000b7, calls: [217, 218, 219, 97, 268, 241, 280, 282, 265, 117, 271, 425, 426, 427] },
} as const;

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const NOT_PERMITTED = 0x00050001;
/** Numbers from here on are a second set of calls on x64, by which the others could be reached. */
const X32 = 0x40000000;

/** A filter as the kernel reads it: eight bytes per instruction. Null for a processor whose numbers we do not know. */
export function seccompFilter(processor: string): Uint8Array | null {
  if (processor !== "x64" && processor !== "arm64") return null;
  const { audit, calls } = REFUSED[processor];
  // Each test that hits jumps to the refusal, which is the last instruction; allowing is the one before.
  const tests = calls.length + 1;
  const program: [code: number, whenTrue: number, whenFalse: number, value: number][] = [
    [LOAD, 0, 0, 4],
    [JUMP_EQUAL, 0, tests + 2, audit],
    [LOAD, 0, 0, 0],
    [JUMP_AT_LEAST, calls.length + 1, 0, X32],
    ...calls.map((call, index): [number, number, number, number] => [JUMP_EQUAL, calls.length - index, 0, call]),
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, NOT_PERMITTED],
  ];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, whenTrue, whenFalse, value]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(whenTrue, index * 8 + 2);
    bytes.writeUInt8(whenFalse, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  }
  return bytes;
}
