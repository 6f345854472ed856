import { countImages, offersTools, readCommon, readMessages, readTokenCap, toolSegments, withTools } from "./fields.ts";
import { badRequest, type PromptSegment, type Protocol } from "./protocol.ts";

export const openaiResponses: Protocol = {
  api: "responses",
  path: "/v1/responses",
  dialect: "openai",
  read(body) {
    const common = readCommon(body);
    if (!common.ok) return common;
    const { instructions, input } = body;
    if (instructions !== undefined && instructions !== null && typeof instructions !== "string") {
      return badRequest("`instructions` must be a string", "instructions");
    }
    const conversation =
      typeof input === "string"
        ? { ok: true as const, value: [{ role: "user", text: input }] }
        : readMessages(input, "input");
    if (!conversation.ok) return conversation;
    const cap = readTokenCap(body, "max_output_tokens");
    if (!cap.ok) return cap;
    const system: PromptSegment[] = typeof instructions === "string" ? [{ role: "system", text: instructions }] : [];
    const segments = withTools([...system, ...conversation.value], toolSegments(body));
    const shape = {
      api: "responses" as const,
      segments,
      offersTools: offersTools(body),
      imageCount: countImages(segments),
    };
    return { ok: true, value: { ...common.value, ...cap.value, ...shape } };
  },
};
