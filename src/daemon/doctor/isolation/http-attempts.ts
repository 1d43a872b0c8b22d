import type { Actor } from "./actor.ts";
import { type Attempt, judge } from "./attempt.ts";
import type { Canaries } from "./canaries.ts";
import type { Tenant } from "./plant.ts";
import { OPERATIONS, type Parameter, valuesFor } from "./route-values.ts";

export interface DescribedOperation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly hasBody: boolean;
}

/** Spoken by its own attempts. */
const ELSEWHERE = ["/mcp"];
/** Served, but not described. */
const UNDESCRIBED = ["/metrics", "/api/openapi.json"];

/** Everything the API has, by its own description: a new route is attempted, or reported as one that nobody attempts. */
export async function describedOperations(operator: Actor): Promise<DescribedOperation[]> {
  const { paths } = await operator.must<{ paths: Record<string, Record<string, { parameters?: Parameter[]; requestBody?: unknown }>> }>(
    "GET",
    "/api/openapi.json",
  );
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters: parameters.filter((parameter) => parameter.in !== "header"),
      hasBody: requestBody !== undefined,
    })),
  );
  return [...described, ...UNDESCRIBED.map((path) => ({ method: "GET", path, parameters: [], hasBody: false }))];
}

export async function httpAttempts(
  operations: readonly DescribedOperation[],
  attacker: Tenant,
  victim: Tenant,
  canaries: Canaries,
): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  for (const operation of operations) {
    if (ELSEWHERE.includes(operation.path)) continue;
    const { method, path } = operation;
    const way = `${method} ${path}`;
    const kind = path.split("/")[2] || "system";
    const known = OPERATIONS[way];
    const unfilled = operation.parameters.filter((parameter) => valuesFor(path, parameter, victim) === undefined);
    if (unfilled.length > 0 || (operation.hasBody && known?.bodies === undefined)) {
      const what = unfilled.length > 0 ? `the parameter ${unfilled.map(({ name }) => name).join(", ")}` : "the body";
      attempts.push({ kind, way, outcome: "unprobed", detail: `unprobed route ${way}: say in route-values.ts what ${what} is to be` });
      continue;
    }
    const mustRefuse = known?.common !== true;
    for (const address of addressesOf(operation, victim))
      for (const body of known?.bodies?.(victim, attacker) ?? [undefined])
        attempts.push(
          judge(
            { kind, way: address.way, mustRefuse, said: saidBy(address.path, body) },
            await attacker.actor.call(method, address.path, body),
            canaries,
          ),
        );
  }
  return [...attempts, ...(await written(attacker, victim, canaries)), ...(await replayed(attacker, victim, canaries))];
}

function saidBy(path: string, body: unknown): string {
  return `${decodeURIComponent(path)} ${JSON.stringify(body)}`;
}

/** With what is required, and then with each of what is not. */
function addressesOf({ method, path, parameters }: DescribedOperation, victim: Tenant): { readonly path: string; readonly way: string }[] {
  const values = (parameter: Parameter): readonly string[] => valuesFor(path, parameter, victim) ?? [];
  const paths = parameters
    .filter((parameter) => parameter.in === "path")
    .reduce<string[]>(
      (made, one) => made.flatMap((text) => values(one).map((value) => text.replace(`{${one.name}}`, encodeURIComponent(value)))),
      [path],
    );
  const query = parameters.filter((parameter) => parameter.in === "query");
  const required = query.filter((parameter) => parameter.required);
  const base = required.map((one) => `${one.name}=${encodeURIComponent(values(one)[0] ?? "")}`);
  const searches = [
    { text: base, named: "" },
    ...query.flatMap((one) =>
      values(one).map((value) => ({
        text: [...base.filter((part) => !part.startsWith(`${one.name}=`)), `${one.name}=${encodeURIComponent(value)}`],
        named: `?${one.name}`,
      })),
    ),
  ];
  return paths.flatMap((one) =>
    searches.map(({ text, named }) => ({ path: text.length === 0 ? one : `${one}?${text.join("&")}`, way: `${method} ${path}${named}` })),
  );
}

/** Where the attacker may read and not write. A key that nobody has written yet: nothing but the missing right is in the way. */
async function written(attacker: Tenant, victim: Tenant, canaries: Canaries): Promise<Attempt[]> {
  const key = `by-${attacker.id}`;
  const pool = `/api/pools/${victim.openPool}`;
  const put = await attacker.actor.call("PUT", `${pool}/entries/${key}`, { value: "x" });
  const batch = await attacker.actor.call("POST", `${pool}/batch`, { writes: [{ key, value: "x" }] });
  const judging = (way: string) => ({ kind: "pools", way: `${way} of a pool it may only read`, mustRefuse: true, said: pool });
  return [
    judge(judging("PUT /api/pools/{pool}/entries/{key}"), put, canaries),
    judge(judging("POST /api/pools/{pool}/batch"), batch, canaries),
  ];
}

/** The victim's own requests again, under the victim's own keys. */
async function replayed(attacker: Tenant, victim: Tenant, canaries: Canaries): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  for (const { path, body, key } of victim.keyed) {
    const reply = await attacker.actor.call("POST", path, body, { "idempotency-key": key });
    attempts.push(
      judge(
        {
          kind: "idempotency",
          way: `POST ${path.replace(victim.pool, "{pool}")} with its key`,
          mustRefuse: false,
          said: saidBy(path, body),
        },
        reply,
        canaries,
      ),
    );
  }
  return attempts;
}
