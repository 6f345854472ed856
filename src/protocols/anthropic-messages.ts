import {
  countImages,
  offersTools,
  readCommon,
  readContent,
  readMessages,
  readTokenCap,
  toolSegments,
  withTools,
} from "./fields.ts";
import type { JsonObject } from "./json.ts";
import { badRequest, type InferenceRequest, type PromptSegment, type Protocol, type Result } from "./protocol.ts";

export const anthropicMessages: Protocol = {
  api: "messages",
  path: "/v1/messages",
  dialect: "anthropic",
  read(body) {
    if (body.max_tokens === undefined) return badRequest("max_tokens: Field required", "max_tokens");
    return readMessagesRequest(body, "messages");
  },
};

export const anthropicCountTokens: Protocol = {
  api: "countTokens",
  path: "/v1/messages/count_tokens",
  dialect: "anthropic",
  read: (body) => readMessagesRequest(body, "countTokens"),
};

function readMessagesRequest(body: JsonObject, api: "messages" | "countTokens"): Result<InferenceRequest> {
  const common = readCommon(body);
  if (!common.ok) return common;
  const system: PromptSegment[] = [];
  const error = readContent(body.system, "system", "system", system);
  if (error !== undefined) return { ok: false, error };
  const messages = readMessages(body.messages, "messages");
  if (!messages.ok) return messages;
  const cap = readTokenCap(body, "max_tokens");
  if (!cap.ok) return cap;
  const segments = withTools([...system, ...messages.value], toolSegments(body));
  return {
    ok: true,
    value: {
      ...common.value,
      ...cap.value,
      api,
      segments,
      offersTools: offersTools(body),
      imageCount: countImages(segments),
    },
  };
}
