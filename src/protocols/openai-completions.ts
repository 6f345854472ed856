import { readCommon, readTokenCap } from "./fields.ts";
import type { JsonValue } from "./json.ts";
import { badRequest, type InferenceRequest, type Protocol, type Result } from "./protocol.ts";

export const openaiCompletions: Protocol = {
  api: "completions",
  path: "/v1/completions",
  dialect: "openai",
  read(body) {
    const common = readCommon(body);
    if (!common.ok) return common;
    const prompt = readPrompt(body.prompt);
    if (!prompt.ok) return prompt;
    const cap = readTokenCap(body, "max_tokens");
    if (!cap.ok) return cap;
    return {
      ok: true,
      value: { ...common.value, ...cap.value, api: "completions", ...prompt.value, offersTools: false, imageCount: 0 },
    };
  },
};

/** A prompt is a string, a list of strings, a list of token ids, or a list of such lists. */
function readPrompt(prompt: JsonValue | undefined): Result<Pick<InferenceRequest, "segments" | "promptTokenIds">> {
  if (prompt === undefined || prompt === null) return badRequest("the field `prompt` is missing", "prompt");
  if (typeof prompt === "string") return { ok: true, value: { segments: [{ role: "prompt", text: prompt }] } };
  if (!Array.isArray(prompt)) return badRequest("`prompt` must be a string or a list", "prompt");
  if (isTokenIds(prompt)) return { ok: true, value: { segments: [], promptTokenIds: prompt } };
  if (prompt.every((one) => typeof one === "string")) {
    return { ok: true, value: { segments: prompt.map((text) => ({ role: "prompt", text })) } };
  }
  if (prompt.every((one) => Array.isArray(one) && isTokenIds(one))) {
    return { ok: true, value: { segments: [], promptTokenIds: (prompt as number[][]).flat() } };
  }
  return badRequest("`prompt` must hold strings or token ids, not a mixture", "prompt");
}

function isTokenIds(list: JsonValue[]): list is number[] {
  return list.length > 0 && list.every((id) => typeof id === "number" && Number.isInteger(id));
}
