import { deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { world } from "../../test/support/policy-generators.ts";
import { stillFleet } from "../../test/support/still-fleet.ts";
import { buildSnapshot } from "../resources/snapshot.ts";
import { recordToAll } from "../telemetry/recent-decisions.ts";
import { InferenceHandler } from "./handler.ts";
import { ALONE, DEFAULT_HANDLER } from "./settings.ts";

const TRIES = 30_000;
const PATHS = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/embeddings",
  "/tokenize",
];

const text = fc.oneof(
  fc.string(),
  fc.lorem({ maxCount: 30 }),
  fc.constantFrom("user", "assistant", "text", "m", "beta"),
);
const part = fc.record(
  { type: fc.constantFrom("text", "image_url", "tool_use", "input_text"), text },
  { requiredKeys: [] },
);
const content = fc.oneof(text, fc.array(part, { maxLength: 3 }), fc.jsonValue());
const message = fc.record({ role: text, content }, { requiredKeys: [] });
const MODELS = ["alpha", "beta-1", "beta-2"];
/** What every API takes, more or less. */
const wellFormed = fc.tuple(fc.constantFrom(...MODELS), text, fc.boolean()).map(([model, prompt, stream]) => ({
  ...{ model, stream, prompt, input: prompt, max_tokens: 5 },
  messages: [{ role: "user", content: prompt }],
}));
/** Fields of any kind, to be put over it. */
const strange = fc.record(
  {
    model: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...MODELS, "class/coding", "x/*") }, fc.jsonValue()),
    messages: fc.oneof({ weight: 4, arbitrary: fc.array(message, { maxLength: 4 }) }, fc.jsonValue()),
    input: fc.oneof(text, fc.array(fc.oneof(text, message)), fc.jsonValue()),
    prompt: fc.oneof(text, fc.array(text), fc.array(fc.nat()), fc.jsonValue()),
    system: content,
    max_tokens: fc.oneof(fc.integer(), fc.double(), fc.jsonValue()),
    stream: fc.oneof(fc.boolean(), fc.jsonValue()),
    tools: fc.oneof(fc.array(fc.jsonValue(), { maxLength: 2 }), fc.jsonValue()),
    cache_salt: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
const bytes = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(wellFormed, fc.option(strange, { nil: {}, freq: 2 }))
      .map(([body, more]) => Buffer.from(JSON.stringify({ ...body, ...more }))),
  },
  { weight: 1, arbitrary: fc.json().map((json) => Buffer.from(json)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)) },
);
const encoded = fc
  .tuple(
    bytes,
    fc.oneof({ weight: 8, arbitrary: fc.constant("") }, fc.constantFrom("gzip", "gzip", "deflate", "br", "gzip, gzip")),
  )
  .map(([plain, encoding]): [Buffer, string] => [
    encoding === "gzip" ? gzipSync(plain) : encoding === "deflate" ? deflateSync(plain) : plain,
    encoding,
  ]);
const header = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  fc.dictionary(fc.constantFrom("content-type", "x-env", "authorization"), text),
);
const path = fc.oneof(
  { weight: 16, arbitrary: fc.constantFrom(...PATHS) },
  fc.webPath(),
  fc.constantFrom(...PATHS).map((known) => `${known}/`),
);

test("whatever is sent, under whatever policies: one verdict, and nothing stays reserved", {
  timeout: 600_000,
}, async () => {
  const fleet = await stillFleet(2, "default/pool", () => performance.now());
  for (const worker of fleet.workers.all()) {
    worker.healthy = true;
    worker.models = new Map(MODELS.map((model) => [model, { maxModelLen: 4096 }]));
  }
  const nobody = recordToAll([]);
  const seen = { forward: 0, pass: 0, answer: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.option(world),
      fc.array(fc.tuple(path, encoded, header, fc.boolean()), {
        minLength: 1,
        maxLength: 4,
      }),
      async (declared, requests) => {
        const snapshot = buildSnapshot([...(declared?.policies ?? []), ...(declared?.models ?? [])]);
        const surroundings = { ...ALONE, explains: () => true };
        const handler = new InferenceHandler(snapshot, fleet, nobody, surroundings, DEFAULT_HANDLER);
        for (const [path, [body, encoding], more, ours] of requests) {
          const headers = new Map(Object.entries({ "content-type": "application/json", ...more }));
          if (encoding !== "") headers.set("content-encoding", encoding);
          const head = {
            ...{ method: "POST", path, headers, acrossClusters: true, routeName: undefined, subset: undefined },
            observe: ours ? ("access-log" as const) : undefined,
            claim: () => undefined,
          };
          const verdict = await handler.decide(head, body, performance.now());
          seen[verdict.kind]++;
          if (verdict.kind === "answer") {
            expect(verdict.status).toBeGreaterThanOrEqual(400);
            expect(verdict.status).not.toBe(500);
            expect(JSON.parse(verdict.body)).toHaveProperty("error");
          }
          if (verdict.kind === "forward")
            verdict.flight.end({ status: 200, usage: {}, clientGone: false, broken: false }, performance.now());
        }
        expect([...fleet.workers.all()].map(({ inFlight }) => inFlight)).toEqual([0, 0]);
      },
    ),
    { numRuns: TRIES },
  );
  expect(Math.min(seen.forward, seen.answer)).toBeGreaterThan(TRIES / 20);
});
