import type { ApiName } from "../api/request-match.ts";
import type { JsonObject } from "./json.ts";

/** What the rest of the pipeline knows of a request, whichever API it came by. */
export interface InferenceRequest {
  api: ApiName;
  /** As the client wrote it. */
  model: string;
  stream: boolean;
  /** The prompt in the order in which a chat template renders it. */
  segments: PromptSegment[];
  /** Prompts given as token ids (`/v1/completions` only); `segments` is empty then. */
  promptTokenIds?: number[];
  /** The client's cap on output tokens. */
  maxTokens?: number;
  offersTools: boolean;
  imageCount: number;
  /** vLLM's `cache_salt`: requests with different salts share no KV blocks. */
  cacheSalt?: string;
}

export interface PromptSegment {
  role: string;
  /** Text, or for an image what identifies its content (a URL or data URL). */
  text: string;
  image?: boolean;
}

/** A refusal, in no API's shape yet. */
export interface RequestError {
  status: number;
  /** Machine-readable reason, e.g. `model_not_found`. */
  code: string;
  message: string;
  /** The field at fault. */
  param?: string;
  retryAfterSeconds?: number;
}

export type Result<T> = { ok: true; value: T } | { ok: false; error: RequestError };

export function badRequest(message: string, param?: string): { ok: false; error: RequestError } {
  return {
    ok: false,
    error: { status: 400, code: "invalid_request", message, ...(param === undefined ? {} : { param }) },
  };
}

/** Whose error shape and conventions an API follows. */
export type Dialect = "openai" | "anthropic";

/** One API: how its requests are read. One file per API implements it. */
export interface Protocol {
  api: ApiName;
  path: string;
  dialect: Dialect;
  /** Reads a parsed body. Only the fields that decisions need are checked; all others are the worker's to judge. */
  read(body: JsonObject): Result<InferenceRequest>;
}
