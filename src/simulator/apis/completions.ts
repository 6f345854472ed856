import { tokenize } from "../tokenizer.ts";
import { event, openaiUsage, type SimulatedApi, saltOf, tokenCap, wantsUsage } from "./api.ts";
import { now } from "./chat.ts";

export const completionsApi: SimulatedApi = {
  path: "/v1/completions",
  read(body) {
    const { prompt } = body;
    const ids =
      typeof prompt === "string"
        ? tokenize(prompt)
        : Array.isArray(prompt) && prompt.every((id) => typeof id === "number")
          ? prompt
          : undefined;
    if (ids === undefined) return "prompt: Input should be a valid string or list of token ids";
    return {
      prompt: ids,
      maxTokens: tokenCap(body.max_tokens) ?? 16,
      stream: body.stream === true,
      salt: saltOf(body),
    };
  },
  stream(id, body) {
    const chunk = (choices: object[], more: object = {}) =>
      event({ id, object: "text_completion", created: now(), model: body.model, choices, ...more });
    return {
      start: () => "",
      token: (text, last) => chunk([{ index: 0, text, logprobs: null, finish_reason: last ? "length" : null }]),
      end: (counts) => `${wantsUsage(body) ? chunk([], { usage: openaiUsage(counts) }) : ""}data: [DONE]\n\n`,
    };
  },
  whole(id, body, text, tokenIds, counts) {
    const ids = body.return_token_ids === true ? { token_ids: tokenIds } : {};
    const choices = [{ index: 0, text, logprobs: null, finish_reason: "length", ...ids }];
    return { id, object: "text_completion", created: now(), model: body.model, choices, usage: openaiUsage(counts) };
  },
};
