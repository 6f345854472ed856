import type { Dialect, RequestError } from "./protocol.ts";

const OPENAI_TYPES: Record<number, string> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

/** https://docs.anthropic.com/en/api/errors */
const ANTHROPIC_TYPES: Record<number, string> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
};

/** The JSON body of an error as clients of the dialect parse it. */
export function errorBody(dialect: Dialect, error: RequestError): string {
  if (dialect === "anthropic") {
    const type = ANTHROPIC_TYPES[error.status] ?? (error.status < 500 ? "invalid_request_error" : "api_error");
    return JSON.stringify({ type: "error", error: { type, message: error.message } });
  }
  const type = OPENAI_TYPES[error.status] ?? (error.status < 500 ? "invalid_request_error" : "server_error");
  return JSON.stringify({ error: { message: error.message, type, param: error.param ?? null, code: error.code } });
}
