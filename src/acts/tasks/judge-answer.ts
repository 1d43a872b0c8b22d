import type { Tx } from "../../store/engine.ts";
import { judgeStepAnswerIn } from "../workflows/judge-step-answer.ts";
import { misfitOf } from "./answer-schema.ts";
import { jsonIn, withoutClosing } from "./answer-value.ts";
import { type Answered, corrected, ends, type Judgement } from "./judgement.ts";
import type { TaskParts } from "./task-parts.ts";

/** Whether the answer is what the task asked for. Comes before anything of the turn's end is written; what a step is to store is stored here. */
export async function judgeAnswerIn(parts: TaskParts, tx: Tx, answered: Answered): Promise<Judgement> {
  const { task, text } = answered;
  if (task.kind === "step") return judgeStepAnswerIn(parts, tx, answered);
  const schema = task.spec.outputSchema;
  if (schema === undefined) return ends(withoutClosing(text));
  const found = jsonIn(text);
  const problem = found ? misfitOf(schema as object, found.value) : "it holds no JSON, or it is nested too deeply";
  if (problem === null) return ends(found?.value);
  return corrected(answered, `Your answer must be JSON that fits this schema: ${JSON.stringify(schema)}\nIt does not: ${problem}`);
}
