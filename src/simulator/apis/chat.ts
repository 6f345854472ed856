import { readMessages, renderChat } from "../prompts.ts";
import { tokenize } from "../tokenizer.ts";
import { event, openaiUsage, type SimulatedApi, saltOf, tokenCap, wantsUsage } from "./api.ts";

export const chatApi: SimulatedApi = {
  path: "/v1/chat/completions",
  read(body) {
    const messages = readMessages(body.messages);
    if (messages === undefined) return "messages: Input should be a valid list";
    return {
      prompt: tokenize(renderChat(messages, body.tools)),
      maxTokens: tokenCap(body.max_completion_tokens) ?? tokenCap(body.max_tokens),
      stream: body.stream === true,
      salt: saltOf(body),
    };
  },
  stream(id, body) {
    const chunk = (choices: object[], more: object = {}) =>
      event({ id, object: "chat.completion.chunk", created: now(), model: body.model, choices, ...more });
    const choice = (delta: object, finish: string | null) => [
      { index: 0, delta, logprobs: null, finish_reason: finish },
    ];
    return {
      start: () => chunk(choice({ role: "assistant", content: "" }, null)),
      token: (text, last) => chunk(choice({ content: text }, last ? "length" : null)),
      end: (counts) => `${wantsUsage(body) ? chunk([], { usage: openaiUsage(counts) }) : ""}data: [DONE]\n\n`,
    };
  },
  whole(id, body, text, _tokenIds, counts) {
    const message = { role: "assistant", content: text, refusal: null };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: "length" }];
    return { id, object: "chat.completion", created: now(), model: body.model, choices, usage: openaiUsage(counts) };
  },
};

export function now(): number {
  return Math.floor(Date.now() / 1000);
}
