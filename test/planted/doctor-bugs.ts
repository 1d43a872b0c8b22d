import type { PlantedBug } from "./bugs.ts";

const ROOM = "src/daemon/doctor";
const doctor = { tests: ["test/scenarios/doctor.test.ts"] };
const isolation = { tests: ["test/security/isolation.test.ts"], filter: "does not trust" };

/** Bugs in the doctor. What the isolation self-test must notice is planted by its own test. */
export const DOCTOR_BUGS: readonly PlantedBug[] = [
  {
    name: "doctor: a port that is taken is no trouble",
    file: `${ROOM}/system-checks.ts`,
    from: "if (refused === undefined) return ok(",
    to: 'if (refused === undefined || refused === "EADDRINUSE") return ok(',
    ...doctor,
  },
  {
    name: "doctor: a store of a newer version is opened",
    file: "src/store/inspect-store.ts",
    from: "schema: refuseNewer(applied ?? [], MIGRATIONS)",
    to: "schema: refuseNewer([], MIGRATIONS)",
    ...doctor,
  },
  {
    name: "doctor: repairs are told and not made",
    file: `${ROOM}/doctor.ts`,
    from: "      repair.run();\n",
    to: "",
    ...doctor,
  },
  {
    name: "doctor: an attempt that does not fit counts as refused",
    file: `${ROOM}/isolation/attempt.ts`,
    from: 'if (reply.status === 422 || code === "request.malformed")',
    to: "if (reply.status === 499)",
    ...isolation,
    filter: "fails when hard links",
  },
  {
    name: "doctor: refusals count where nobody finds anything",
    file: `${ROOM}/isolation/isolation.ts`,
    from: "blind.length === 0 && ",
    to: "",
    ...isolation,
  },
  {
    name: "doctor: being told of another's things is no leak as long as nothing in them is",
    file: `${ROOM}/isolation/canaries.ts`,
    from: "!said.includes(name)",
    to: "said === name",
    ...isolation,
    filter: "fails when hard links",
  },
];
