import type { ApiName } from "../api/request-match.ts";
import { anthropicCountTokens, anthropicMessages } from "./anthropic-messages.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiCompletions } from "./openai-completions.ts";
import { openaiEmbeddings } from "./openai-embeddings.ts";
import { openaiResponses } from "./openai-responses.ts";
import type { Dialect, Protocol } from "./protocol.ts";
import { vllmTokenize } from "./vllm-tokenize.ts";

const PROTOCOLS: readonly Protocol[] = [
  openaiChat,
  openaiCompletions,
  openaiResponses,
  anthropicMessages,
  anthropicCountTokens,
  openaiEmbeddings,
  vllmTokenize,
];
const BY_PATH = new Map(PROTOCOLS.map((protocol) => [protocol.path, protocol]));

/** The API of a path, compared byte for byte: `//v1/messages` or `/v1/Messages` is no API of ours and is refused. */
export function protocolOf(path: string): Protocol | undefined {
  return BY_PATH.get(path);
}

export const MODELS_PATH = "/v1/models";

/** The path by which an API is asked. */
export function pathOfApi(api: ApiName): string {
  return PROTOCOLS.find((protocol) => protocol.api === api)?.path ?? MODELS_PATH;
}

/** Whose error shape a client on this path expects, known paths or not. */
export function dialectOf(path: string): Dialect {
  return path.startsWith("/v1/messages") ? "anthropic" : "openai";
}
