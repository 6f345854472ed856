import { contentText, readMessages, renderChat } from "../prompts.ts";
import { tokenize } from "../tokenizer.ts";
import { type Counts, event, type SimulatedApi, type SimulatedRequest, saltOf, tokenCap } from "./api.ts";

/** Reads an Anthropic body; also what `/v1/messages/count_tokens` counts. */
export function readAnthropic(body: Record<string, unknown>): SimulatedRequest | string {
  const messages = readMessages(body.messages);
  if (messages === undefined) return "messages: Input should be a valid list";
  const system = body.system === undefined ? [] : [{ role: "system", content: contentText(body.system) }];
  return {
    prompt: tokenize(renderChat([...system, ...messages], body.tools)),
    maxTokens: tokenCap(body.max_tokens),
    stream: body.stream === true,
    salt: saltOf(body),
  };
}

export const messagesApi: SimulatedApi = {
  path: "/v1/messages",
  read: readAnthropic,
  stream(id, body) {
    return {
      // As vLLM: the start carries the whole input, and what was cached comes only at the end.
      start: ({ promptTokens }) => {
        const usage = { input_tokens: promptTokens, output_tokens: 0 };
        const message = {
          id,
          type: "message",
          role: "assistant",
          content: [],
          model: body.model,
          stop_reason: null,
          stop_sequence: null,
          usage,
        };
        const block = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
        return event({ type: "message_start", message }, "message_start") + event(block, "content_block_start");
      },
      token: (text) =>
        event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }, "content_block_delta"),
      end: (counts) =>
        event({ type: "content_block_stop", index: 0 }, "content_block_stop") +
        event(
          {
            type: "message_delta",
            delta: { stop_reason: "max_tokens", stop_sequence: null },
            usage: anthropicUsage(counts),
          },
          "message_delta",
        ) +
        event({ type: "message_stop" }, "message_stop"),
    };
  },
  whole(id, body, text, _tokenIds, counts) {
    const content = [{ type: "text", text }];
    return {
      id,
      type: "message",
      role: "assistant",
      content,
      model: body.model,
      stop_reason: "max_tokens",
      stop_sequence: null,
      usage: anthropicUsage(counts),
    };
  },
};

function anthropicUsage({ promptTokens, cachedTokens, outputTokens }: Counts) {
  return {
    input_tokens: promptTokens - cachedTokens,
    output_tokens: outputTokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation_input_tokens: 0,
  };
}
