import type { ASTNode } from "@marcbachmann/cel-js";
import type { ConditionProblem, Named } from "./condition.ts";

export interface ConditionUses {
  readonly input: Named;
  readonly outputs: Named;
  readonly steps: Named;
  readonly loops: number;
  readonly nodes: number;
}

const ROOTS = ["input", "outputs", "steps"] as const;
const LOOPS = ["all", "exists", "exists_one", "map", "filter"];
const MAX_LOOPS = 3;
/** `matches`: a regular expression can keep JavaScript busy for hours. `bind`: values that hold themselves many times over. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["matches", "`matches` is not available: use startsWith, endsWith or contains"],
  ["bind", "`cel.bind` is not available"],
]);

/** What an expression names, and why it could take long. */
export function conditionUses(ast: ASTNode): ConditionUses | ConditionProblem {
  const named = new Map<string, Set<string> | "all">(ROOTS.map((root) => [root, new Set()]));
  let loops = 0;
  let nodes = 0;
  let refused: ConditionProblem | null = null;
  const refuse = (problem: string, { start }: ASTNode): void => {
    refused ??= { problem, offset: start };
  };
  const visit = (node: ASTNode, inLoop: boolean): void => {
    nodes++;
    const member = memberOf(node);
    const names = member && named.get(member.root);
    if (member && names) {
      if (names !== "all") names.add(member.name);
      return;
    }
    if (node.op === "id" && named.has(node.args)) named.set(node.args, "all");
    if (node.op === "rcall" || node.op === "call") {
      const [name] = node.args;
      const why = REFUSED.get(name);
      if (why !== undefined) refuse(why, node);
      if (node.op === "rcall" && LOOPS.includes(name)) {
        if (inLoop) refuse(`\`${name}\` stands inside another loop`, node);
        if (++loops > MAX_LOOPS) refuse(`there are more than ${MAX_LOOPS} loops (${LOOPS.join(", ")})`, node);
        visit(node.args[1], inLoop);
        for (const part of node.args[2]) visit(part, true);
        return;
      }
      const [asked] = name === "has" && node.op === "call" ? node.args[1] : [];
      const there = asked && memberOf(asked);
      if (there && (there.root === "outputs" || there.root === "steps"))
        refuse(
          `has(${there.root}.${there.name}) is always true: ${there.root === "outputs" ? `write outputs.${there.name} != null` : "ask for its status"}`,
          node,
        );
    }
    for (const part of partsOf(node)) visit(part, inLoop);
  };
  visit(ast, false);
  const list = (root: (typeof ROOTS)[number]): Named => {
    const names = named.get(root);
    return names === "all" || names === undefined ? "all" : [...names];
  };
  return refused ?? { input: list("input"), outputs: list("outputs"), steps: list("steps"), loops, nodes };
}

/** `outputs.client`, `outputs["client"]`. */
function memberOf(node: ASTNode): { readonly root: string; readonly name: string } | null {
  if (node.op !== "." && node.op !== "[]") return null;
  const [of, by] = node.args as [ASTNode, ASTNode | string];
  const name = typeof by === "string" ? by : by.op === "value" ? by.args : null;
  return of.op === "id" && typeof name === "string" ? { root: of.args, name } : null;
}

function partsOf({ args }: ASTNode): ASTNode[] {
  const found: ASTNode[] = [];
  const look = (part: unknown): void => {
    if (Array.isArray(part)) part.forEach(look);
    else if (typeof part === "object" && part !== null && "op" in part) found.push(part as ASTNode);
  };
  look(args);
  return found;
}
