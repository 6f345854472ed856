import { readCommon, readMessages } from "./fields.ts";
import { badRequest, type PromptSegment, type Protocol } from "./protocol.ts";

export const openaiEmbeddings: Protocol = {
  api: "embeddings",
  path: "/v1/embeddings",
  dialect: "openai",
  read(body) {
    const common = readCommon(body);
    if (!common.ok) return common;
    const { input } = body;
    let segments: PromptSegment[] = [];
    if (typeof input === "string") segments = [{ role: "prompt", text: input }];
    else if (Array.isArray(input))
      segments = input.map((one) => ({ role: "prompt", text: typeof one === "string" ? one : JSON.stringify(one) }));
    else if (body.messages === undefined) return badRequest("`input` must be a string or a list", "input");
    else {
      const messages = readMessages(body.messages, "messages");
      if (!messages.ok) return messages;
      segments = messages.value;
    }
    return {
      ok: true,
      value: { ...common.value, stream: false, api: "embeddings", segments, offersTools: false, imageCount: 0 },
    };
  },
};
