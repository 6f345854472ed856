import type { RejectAction } from "../api/inference-policy.ts";
import type { EmptyCause } from "../policy/evaluate.ts";
import type { RequestError } from "../protocols/protocol.ts";

const RETRY_AFTER_SECONDS = 1;

/** Why nobody may serve a request, told apart for the client: overload, policy, health, or a name that nobody has. */
export function refusalFor(cause: EmptyCause, model: string): RequestError {
  switch (cause) {
    case "unknown-model":
      return {
        status: 404,
        code: "model_not_found",
        message: `The model \`${model}\` does not exist.`,
        param: "model",
      };
    case "overload":
      return {
        status: 429,
        code: "overloaded",
        message: `All backends for the model \`${model}\` are busy. Please retry.`,
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      };
    case "policy":
      return {
        status: 403,
        code: "refused_by_policy",
        message: `No backend may serve this request for the model \`${model}\`.`,
      };
    case "unhealthy":
      return {
        status: 503,
        code: "no_healthy_backend",
        message: `No healthy backend for the model \`${model}\`.`,
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      };
  }
}

export function rejection(reject: RejectAction): RequestError {
  return { status: reject.status ?? 403, code: reject.code ?? "refused_by_policy", message: reject.message };
}
