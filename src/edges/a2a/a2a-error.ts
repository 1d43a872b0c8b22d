import {
  A2AError,
  ContentTypeNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import { Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";

/** Our refusals in the protocol's words, with our own code beside them. What we did not foresee is told without its insides. */
export function a2aError(error: unknown, log: Log): Error {
  if (error instanceof A2AError) return error;
  if (!(error instanceof Failure) || error.code === "internal.bug") {
    log.error("an A2A request failed unexpectedly", { error: error instanceof Error ? error.message : String(error) });
    return new A2AError({ message: "something went wrong inside Guildhall", metadata: { code: "internal.bug" } });
  }
  const options = { message: [error.message, error.hint].filter((said) => said !== "").join(". "), metadata: { code: error.code } };
  if (error.details.a2a === "content") return new ContentTypeNotSupportedError(options);
  switch (error.code) {
    case "request.not_found":
      return new TaskNotFoundError(options);
    case "task.over":
      return new TaskNotCancelableError(options);
    case "request.malformed":
    case "request.key_reused":
      return new RequestMalformedError(options);
    default:
      return new UnsupportedOperationError(options);
  }
}
