import { readMessages, renderChat } from "../prompts.ts";
import { tokenize } from "../tokenizer.ts";
import { type Counts, event, type SimulatedApi, saltOf, tokenCap } from "./api.ts";
import { now } from "./chat.ts";

export const responsesApi: SimulatedApi = {
  path: "/v1/responses",
  read(body) {
    const { input, instructions } = body;
    const messages = typeof input === "string" ? [{ role: "user", content: input }] : readMessages(input);
    if (messages === undefined) return "input: Input should be a valid string or list";
    const system = typeof instructions === "string" ? [{ role: "system", content: instructions }] : [];
    return {
      prompt: tokenize(renderChat([...system, ...messages], body.tools)),
      maxTokens: tokenCap(body.max_output_tokens),
      stream: body.stream === true,
      salt: saltOf(body),
    };
  },
  stream(id, body) {
    let sequence = 0;
    let text = "";
    const item = { id: `msg_${id}`, type: "message", role: "assistant" };
    const place = { item_id: item.id, output_index: 0, content_index: 0 };
    const emit = (type: string, data: object) => event({ type, sequence_number: sequence++, ...data }, type);
    return {
      start: () =>
        emit("response.created", { response: envelope(id, body, "in_progress", []) }) +
        emit("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } }) +
        emit("response.content_part.added", { ...place, part: outputText("") }),
      token: (delta) => {
        text += delta;
        return emit("response.output_text.delta", { ...place, delta, logprobs: [] });
      },
      end: (counts) => {
        const done = { ...item, status: "completed", content: [outputText(text)] };
        return (
          emit("response.output_text.done", { ...place, text, logprobs: [] }) +
          emit("response.content_part.done", { ...place, part: outputText(text) }) +
          emit("response.output_item.done", { output_index: 0, item: done }) +
          emit("response.completed", { response: envelope(id, body, "completed", [done], counts) })
        );
      },
    };
  },
  whole(id, body, text, _tokenIds, counts) {
    const message = {
      id: `msg_${id}`,
      type: "message",
      role: "assistant",
      status: "completed",
      content: [outputText(text)],
    };
    return envelope(id, body, "completed", [message], counts);
  },
};

function outputText(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function envelope(id: string, body: Record<string, unknown>, status: string, output: object[], counts?: Counts) {
  const usage = counts && {
    input_tokens: counts.promptTokens,
    input_tokens_details: { cached_tokens: counts.cachedTokens },
    output_tokens: counts.outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: counts.promptTokens + counts.outputTokens,
  };
  return {
    id,
    object: "response",
    created_at: now(),
    status,
    model: body.model,
    output,
    usage: usage ?? null,
    error: null,
    tools: [],
    parallel_tool_calls: true,
    tool_choice: "auto",
    metadata: {},
  };
}
