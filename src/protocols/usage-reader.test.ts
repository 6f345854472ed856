import fc from "fast-check";
import { expect, test } from "vitest";
import type { Usage } from "./usage.ts";
import { UsageReader } from "./usage-reader.ts";

// Shapes as vLLM 0.32 sends them.
const CHAT = `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

data: {"id":"1","choices":[{"index":0,"delta":{"content":"say \\"usage\\": {\\"prompt_tokens\\": 9} 曰"}}],"usage":null}

data: {"id":"1","choices":[],"usage":{"prompt_tokens":1098,"total_tokens":1101,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1088,"created_cache_tokens":0}}}

data: [DONE]

`;
const MESSAGES = `event: message_start
data: {"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1098,"output_tokens":0}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"output_tokens":7,"cache_read_input_tokens":1088,"cache_creation_input_tokens":0}}

event: message_stop
data: {"type":"message_stop"}

`;
const RESPONSES = `event: response.created
data: {"type":"response.created","response":{"id":"r","usage":null}}

event: response.completed
data: {"type":"response.completed","response":{"id":"r","usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32},"output_tokens":5,"total_tokens":45}}}

`;
const WHOLE =
  '{"id":"1","choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":20,"total_tokens":26,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":0}}}';

const CASES: [name: string, type: string, text: string, usage: Usage][] = [
  ["chat", "text/event-stream; charset=utf-8", CHAT, { promptTokens: 1098, cachedTokens: 1088, outputTokens: 3 }],
  ["messages", "text/event-stream", MESSAGES, { promptTokens: 1098, cachedTokens: 1088, outputTokens: 7 }],
  ["responses", "text/event-stream", RESPONSES, { promptTokens: 40, cachedTokens: 32, outputTokens: 5 }],
  ["whole", "application/json", WHOLE, { promptTokens: 20, cachedTokens: 0, outputTokens: 6 }],
  ["whole without usage", "application/json", '{"choices":[]}', {}],
  ["a stream with none", "text/event-stream", "data: {}\n\ndata: [DONE]\n\n", {}],
  ["a broken event", "text/event-stream", 'data: {"usage":{"prompt_tok\n\n', {}],
  [
    "CRLF",
    "text/event-stream",
    CHAT.replaceAll("\n", "\r\n"),
    { promptTokens: 1098, cachedTokens: 1088, outputTokens: 3 },
  ],
];

test.each(CASES)("%s: the same wherever the chunks are cut", (_name, type, text, usage) => {
  const bytes = Buffer.from(text);
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length), { maxLength: 40 }), (cuts) => {
      const reader = new UsageReader(type);
      const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      for (let i = 1; i < places.length; i++) reader.push(bytes.subarray(places[i - 1], places[i]));
      expect(reader.end()).toEqual(usage);
    }),
  );
});

test("mistyped usage of a worker is not believed", () => {
  const reader = new UsageReader("application/json");
  reader.push(Buffer.from('{"usage":{"prompt_tokens":"many","completion_tokens":-4,"prompt_tokens_details":[1]}}'));
  expect(reader.end()).toEqual({});
});
