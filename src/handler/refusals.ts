import type { RejectAction } from "../api/inference-policy.ts";
import type { EmptyCause, PolicyDecision } from "../policy/evaluate.ts";
import type { Candidate } from "../policy/facts.ts";
import type { Charge } from "../policy/limit.ts";
import type { RequestError } from "../protocols/protocol.ts";

const RETRY_AFTER_SECONDS = 1;

type Refusal = Exclude<PolicyDecision<Candidate>, { kind: "route" }>;

/**
 * The client's error for a decision that routes nowhere.
 * @param model as the client asked for it
 * @param modelsKnown whether a model that no candidate serves is one that nobody has
 */
export function refusalOf(decision: Refusal, model: string, modelsKnown: boolean): RequestError {
  if (decision.kind === "reject") return rejection(decision.reject);
  if (decision.kind === "limited") return limitReached(decision.charge, decision.retryAfterMs);
  return refusalFor(!modelsKnown && decision.cause === "unknown-model" ? "unhealthy" : decision.cause, model);
}

function limitReached({ limit, subject }: Charge, retryAfterMs: number): RequestError {
  const what =
    limit.tokens === "Cost"
      ? "US dollars"
      : `${limit.tokens === "Total" ? "" : `${limit.tokens.toLowerCase()} `}tokens`;
  const whom = subject === "" ? "" : ` for ${subject}`;
  return {
    status: 429,
    code: "rate_limit_exceeded",
    message: `The limit of ${limit.quantity} ${what} in ${inWords(limit.windowMs)} is reached${whom}.`,
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterMs / 1000)),
  };
}

function inWords(ms: number): string {
  const [unitMs, unit] = (
    [
      [86_400_000, "day"],
      [3_600_000, "hour"],
      [60_000, "minute"],
      [1000, "second"],
    ] as const
  ).find(([unit]) => ms % unit === 0) ?? [1, "millisecond"];
  const count = ms / unitMs;
  return count === 1 ? `1 ${unit}` : `${count} ${unit}s`;
}

/** Why nobody may serve a request, told apart for the client: overload, policy, health, or a name that nobody has. */
function refusalFor(cause: EmptyCause, model: string): RequestError {
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

function rejection(reject: RejectAction): RequestError {
  return { status: reject.status ?? 403, code: reject.code ?? "refused_by_policy", message: reject.message };
}
