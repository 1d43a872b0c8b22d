import { z } from "zod";
import { errorBody } from "../../contract/wire.ts";
import type { Route } from "./route.ts";

type Json = Record<string, unknown>;

const BEARER = "bearer";
const KEY_HEADER = {
  name: "Idempotency-Key",
  in: "header",
  description: "The same key and body answer the same for 24 hours, with one effect.",
  schema: { type: "string", maxLength: 255 },
};

/** The API's description, from the same declarations it is served by. */
export function openApiDocument(routes: readonly Route[], version: string): Json {
  const components = new Components();
  const error = components.schema(errorBody, "output");
  components.named.Error = error;
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    const methods = route.kind === "raw" ? route.methods : [route.kind === "call" ? route.method : "GET"];
    for (const method of methods) {
      paths[path] ??= {};
      paths[path][method.toLowerCase()] = operation(route, method, components);
    }
  }
  return {
    openapi: "3.1.0",
    info: { title: "Guildhall", version, license: { name: "MIT", identifier: "MIT" } },
    paths,
    components: {
      schemas: components.named,
      responses: { Refusal: { description: "Refused, and why", content: { "application/json": { schema: reference("Error") } } } },
      securitySchemes: { [BEARER]: { type: "http", scheme: "bearer" } },
    },
  };
}

function operation(route: Route, method: string, components: Components): Json {
  return {
    operationId: operationId(method, route.path),
    summary: route.summary,
    security: route.allow === "anyone" ? [] : [{ [BEARER]: [] }],
    parameters: [
      ...pathParameters(route, components),
      ...queryParameters(route, components),
      ...(method === "POST" && route.kind === "call" ? [KEY_HEADER] : []),
    ],
    ...(route.kind === "call" && route.body
      ? { requestBody: { required: true, content: { "application/json": { schema: components.schema(route.body, "input") } } } }
      : {}),
    responses: { ...responses(route, components), default: { $ref: "#/components/responses/Refusal" } },
  };
}

function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "" && word !== "api");
  return [method.toLowerCase(), ...words].join("_");
}

function pathParameters(route: Route, components: Components): Json[] {
  const known = route.kind === "raw" || !route.params ? {} : properties(components.schema(route.params, "input"));
  return [...route.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: known[name] ?? { type: "string" },
  }));
}

function queryParameters(route: Route, components: Components): Json[] {
  if (route.kind === "raw" || !route.query) return [];
  const schema = components.schema(route.query, "input");
  const required = (schema.required ?? []) as readonly string[];
  return Object.entries(properties(schema)).map(([name, inner]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema: inner,
  }));
}

function properties(schema: Json): Record<string, unknown> {
  return (schema.properties ?? {}) as Record<string, unknown>;
}

function responses(route: Route, components: Components): Json {
  if (route.kind === "raw") return { 200: { description: "As the protocol says" } };
  if (route.kind === "stream") {
    const events = Object.entries(route.events).map(([name, schema]) => ({ title: name, ...components.schema(schema, "output") }));
    return { 200: { description: "Server-sent events", content: { "text/event-stream": { schema: { oneOf: events } } } } };
  }
  return Object.fromEntries(
    Object.entries(route.answers).map(([status, schema]) => {
      if (status === "204") return [status, { description: "Done" }];
      const type = route.contentType?.split(";")[0] ?? "application/json";
      return [status, { description: "Done", content: { [type]: { schema: components.schema(schema, "output") } } }];
    }),
  );
}

function reference(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

/**
 * Schemas as JSON Schema. What a schema defines inside itself moves to the document's components, because a reference in a document
 * counts from the document's root.
 */
class Components {
  readonly named: Record<string, Json> = {};
  readonly #known = new Map<string, Json>();
  #count = 0;

  schema(schema: z.ZodType, io: "input" | "output"): Json {
    const { $schema: _dialect, ...whole } = z.toJSONSchema(schema, { io, unrepresentable: "any", target: "draft-2020-12" }) as Json;
    const text = JSON.stringify(whole);
    const known = this.#known.get(text);
    if (known) return known;
    const names = new Map(Object.keys((whole.$defs ?? {}) as Json).map((name) => [`#/$defs/${name}`, this.#nameFor(name)]));
    const recursive = text.includes('"$ref":"#"');
    if (recursive) names.set("#", this.#nameFor("Schema"));
    const moved = renamed(whole, names) as Json;
    for (const [name, inner] of Object.entries((moved.$defs ?? {}) as Record<string, Json>))
      this.named[names.get(`#/$defs/${name}`) as string] = inner;
    delete moved.$defs;
    if (recursive) this.named[names.get("#") as string] = moved;
    const result = recursive ? reference(names.get("#") as string) : moved;
    this.#known.set(text, result);
    return result;
  }

  #nameFor(name: string): string {
    return `${name.replace(/^_+/, "")}${++this.#count}`;
  }
}

function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((inner) => renamed(inner, names));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const name = key === "$ref" ? names.get(inner as string) : undefined;
      return [key, name === undefined ? renamed(inner, names) : `#/components/schemas/${name}`];
    }),
  );
}
