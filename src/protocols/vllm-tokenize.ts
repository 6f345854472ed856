import { countImages, offersTools, readCommon, readMessages, toolSegments, withTools } from "./fields.ts";
import { badRequest, type PromptSegment, type Protocol } from "./protocol.ts";

/** vLLM's own `/tokenize`: a `prompt`, or `messages` as for chat. */
export const vllmTokenize: Protocol = {
  api: "tokenize",
  path: "/tokenize",
  dialect: "openai",
  read(body) {
    const common = readCommon(body);
    if (!common.ok) return common;
    let segments: PromptSegment[];
    if (typeof body.prompt === "string") segments = [{ role: "prompt", text: body.prompt }];
    else if (body.messages === undefined) return badRequest("`prompt` must be a string", "prompt");
    else {
      const messages = readMessages(body.messages, "messages");
      if (!messages.ok) return messages;
      segments = withTools(messages.value, toolSegments(body));
    }
    const shape = {
      api: "tokenize" as const,
      segments,
      offersTools: offersTools(body),
      imageCount: countImages(segments),
    };
    return { ok: true, value: { ...common.value, ...shape } };
  },
};
