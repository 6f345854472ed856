import { countImages, offersTools, readCommon, readMessages, readTokenCap, toolSegments, withTools } from "./fields.ts";
import type { Protocol } from "./protocol.ts";

export const openaiChat: Protocol = {
  api: "chat",
  path: "/v1/chat/completions",
  dialect: "openai",
  read(body) {
    const common = readCommon(body);
    if (!common.ok) return common;
    const messages = readMessages(body.messages, "messages");
    if (!messages.ok) return messages;
    const cap = readTokenCap(body, "max_completion_tokens", "max_tokens");
    if (!cap.ok) return cap;
    const segments = withTools(messages.value, toolSegments(body));
    const shape = { api: "chat" as const, segments, offersTools: offersTools(body), imageCount: countImages(segments) };
    return { ok: true, value: { ...common.value, ...cap.value, ...shape } };
  },
};
