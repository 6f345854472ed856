import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { stillFleet } from "../../test/support/still-fleet.ts";
import type { InferencePolicy } from "../api/inference-policy.ts";
import type { Resource } from "../api/resource.ts";
import { piiClassifier } from "../classify/pii.ts";
import { buildSnapshot } from "../resources/snapshot.ts";
import { recordToAll } from "../telemetry/recent-decisions.ts";
import { InferenceHandler, type Verdict } from "./handler.ts";
import type { RequestHead } from "./request-head.ts";
import { ALONE, DEFAULT_HANDLER, type Surroundings } from "./settings.ts";

const TRIES = 100_000;

/** The policy as it is shared: a provider first, and everything marked inside. */
const shared = parse(
  readFileSync(new URL("../../docs/policies/pii-stays-local.yaml", import.meta.url), "utf8"),
) as InferencePolicy;
/** The same, asking a classifier of one's own over HTTP. */
const remote: InferencePolicy = {
  ...shared,
  spec: {
    ...shared.spec,
    tags: [{ name: "pii-detected", input: "everything", http: { url: "http://classifier/pii", cacheSeconds: 1 } }],
  },
};
const provider: Resource = {
  apiVersion: shared.apiVersion,
  kind: "InferenceProvider",
  metadata: { name: "databricks", namespace: "inference" },
  spec: {
    type: "OpenAICompatible",
    endpoint: "https://outside.example/v1",
    models: [{ name: "m" }, { name: "other" }],
  },
};
const pool: Resource = {
  apiVersion: "inference.networking.k8s.io/v1",
  kind: "InferencePool",
  metadata: { name: "pool", namespace: "inference" },
  spec: { selector: { matchLabels: {} }, targetPorts: [{ number: 8000 }] },
};

const MARKS = [
  "write to ada.lovelace@analytical-engines.co.uk today",
  "my card is 4111 1111 1111 1111, valid until May",
  "IBAN DE89 3704 0044 0532 0130 00",
  "his social security number is 536-22-8145",
];
const harmless = fc.lorem({ maxCount: 12 });
const marked = fc
  .tuple(harmless, fc.constantFrom(...MARKS), harmless)
  .map(([before, mark, after]) => `${before} ${mark} ${after}`);

/** Where a prompt can be in a request, of each API that a provider takes. */
const SHAPES: readonly ((text: string) => [path: string, body: object])[] = [
  (text) => ["/v1/chat/completions", { messages: [{ role: "user", content: text }] }],
  (text) => [
    "/v1/chat/completions",
    {
      messages: [
        { role: "system", content: text },
        { role: "user", content: "hi" },
      ],
    },
  ],
  (text) => ["/v1/chat/completions", { messages: [{ role: "user", content: [{ type: "text", text }] }] }],
  (text) => [
    "/v1/chat/completions",
    {
      messages: [
        { role: "user", content: text },
        { role: "assistant", content: "I see." },
        { role: "user", content: "and now?" },
      ],
    },
  ],
  (text) => [
    "/v1/chat/completions",
    {
      messages: [
        { role: "user", content: "look it up" },
        { role: "assistant", tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "1", content: text },
      ],
    },
  ],
  (text) => [
    "/v1/chat/completions",
    {
      messages: [{ role: "user", content: "call it" }],
      tools: [{ type: "function", function: { name: "f", description: text, parameters: {} } }],
    },
  ],
  (text) => ["/v1/completions", { prompt: text }],
  (text) => ["/v1/completions", { prompt: ["first", text] }],
  (text) => ["/v1/responses", { input: text }],
  (text) => ["/v1/responses", { instructions: text, input: [{ role: "user", content: "hi" }] }],
  // Nobody can read this one: what cannot be told stays inside too.
  () => ["/v1/completions", { prompt: [101, 2009, 102] }],
  (text) => ["/v1/embeddings", { input: [text, "more"] }],
];

const request = fc.record({
  shape: fc.nat(SHAPES.length - 1),
  model: fc.constantFrom("m", "m", "other", "inside-only"),
  stream: fc.boolean(),
  /** How the bytes are written, which must not matter. */
  writing: fc.constantFrom("plain", "escaped", "gzip", "spaced"),
});

/** What goes wrong around a request. */
const faults = fc.record({
  ownClassifier: fc.constantFrom("works" as const, "throws" as const),
  remoteClassifier: fc.constantFrom<Answer[]>("says yes", "throws", "times out", "garbage", "no number", "nothing"),
  workers: fc.array(fc.record({ healthy: fc.boolean(), metrics: fc.boolean(), serves: fc.boolean() }), {
    minLength: 3,
    maxLength: 3,
  }),
  /** Scrapes are too old to say anything. */
  stale: fc.boolean(),
  observe: fc.constantFrom("access-log" as const, "in-stream" as const, undefined),
  acrossClusters: fc.boolean(),
  route: fc.constantFrom(undefined, "inference/chat", "nobody/knows"),
  /** How often the same request comes again after its answer broke. */
  retries: fc.nat(2),
  explains: fc.boolean(),
});
type Answer = "says yes" | "says no" | "throws" | "times out" | "garbage" | "no number" | "nothing";
type Faults = typeof faults extends fc.Arbitrary<infer T> ? T : never;

const NO_FAULTS: Faults = {
  ownClassifier: "works",
  remoteClassifier: "says no",
  workers: [],
  stale: false,
  observe: "access-log",
  acrossClusters: true,
  route: undefined,
  retries: 0,
  explains: false,
};

let nowMs = 1_000_000;
let current = NO_FAULTS;

/** A classifier over HTTP, as `postJson` finds it. */
async function classify(): Promise<unknown> {
  switch (current.remoteClassifier) {
    case "says yes":
      return { match: true };
    case "says no":
      return { match: false };
    case "throws":
      throw new Error("connection refused");
    case "times out":
      nowMs += 100;
      throw new DOMException("The operation was aborted due to timeout", "TimeoutError");
    case "garbage":
      return { match: "no", score: "0.0" };
    case "no number":
      return { score: Number.NaN };
    case "nothing":
      return null;
  }
}

const surroundings: Surroundings = { ...ALONE, now: () => nowMs, postJson: classify, explains: () => current.explains };
const nobody = recordToAll([]);
const fleet = await stillFleet(3, "inference/pool", () => nowMs);

/** The fleet as the faults have it: the monitors are stopped, nothing else changes it. */
function arrange({ workers, stale }: Faults): void {
  nowMs += 1000;
  [...fleet.workers.all()].forEach((worker, i) => {
    const state = workers[i];
    worker.healthy = state?.healthy ?? true;
    worker.models =
      state?.serves === false
        ? new Map()
        : new Map([
            ["m", {}],
            ["inside-only", {}],
          ]);
    if (state?.metrics !== false) worker.update({ running: 1, waiting: i, kvCacheUsage: 0.5 }, nowMs);
  });
  if (stale) nowMs += 60_000;
}

function headOf(path: string, headers: Map<string, string>, { observe, acrossClusters, route }: Faults): RequestHead {
  const claim = () => undefined;
  return { method: "POST", path, headers, observe, acrossClusters, routeName: route, claim, subset: undefined };
}

type Asked = typeof request extends fc.Arbitrary<infer T> ? T : never;

function bytesOf({ model, stream, writing }: Asked, body: object): [Buffer, Map<string, string>] {
  const text = JSON.stringify({ model, stream, ...body }, null, writing === "spaced" ? 3 : undefined);
  const written = writing === "escaped" ? text.replace(/[@.]/g, escaped) : text;
  const headers = new Map([["content-type", "application/json"]]);
  if (writing !== "gzip") return [Buffer.from(written), headers];
  return [gzipSync(written), headers.set("content-encoding", "gzip")];
}

/** Of characters that stand in strings alone. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Everything that Envoy is told, where it could name a backend outside. */
function destinations(verdict: Verdict): string {
  if (verdict.kind === "answer") return "";
  return JSON.stringify([verdict.changes, verdict.metadata]);
}

async function decisionsOn(handler: InferenceHandler, asked: Asked, text: string, world: Faults): Promise<Verdict[]> {
  const [path, body] = SHAPES[asked.shape]?.(text) ?? ["", {}];
  const [bytes, headers] = bytesOf(asked, body);
  const verdicts: Verdict[] = [];
  current = world;
  for (let i = 0; i <= world.retries; i++) {
    arrange(world);
    const verdict = await handler.decide(headOf(path, headers, world), bytes, nowMs);
    verdicts.push(verdict);
    if (verdict.kind !== "forward") continue;
    verdict.flight.responseStarted(503, "none");
    verdict.flight.end({ status: 503, usage: {}, clientGone: false, broken: true }, nowMs);
  }
  return verdicts;
}

const handlers = [shared, remote].map(
  (policy) =>
    new InferenceHandler(buildSnapshot([policy, provider, pool]), fleet, nobody, surroundings, DEFAULT_HANDLER),
);

afterEach(() => vi.restoreAllMocks());

test("without a mark and without faults the provider comes first, so that there is something to be kept in", async () => {
  for (const handler of handlers) {
    const asked: Asked = { shape: 0, model: "m", stream: false, writing: "plain" };
    const [verdict] = await decisionsOn(handler, asked, "the weather in Lisbon", NO_FAULTS);
    expect(verdict?.kind).toBe("forward");
    expect(verdict && destinations(verdict)).toContain("provider/inference/databricks");
  }
});

test("no fault lets a marked prompt out, whatever it looks like", { timeout: 900_000 }, async () => {
  let throwing = false;
  const classifyWell = piiClassifier.classify;
  vi.spyOn(piiClassifier, "classify").mockImplementation((text) => {
    if (throwing) throw new Error("the classifier fails");
    return classifyWell(text);
  });
  const kept = { inside: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...handlers), request, marked, faults, async (handler, asked, text, world) => {
      throwing = world.ownClassifier === "throws";
      for (const verdict of await decisionsOn(handler, asked, text, world)) {
        if (verdict.kind === "answer") kept.refused++;
        else kept.inside++;
        expect(destinations(verdict)).not.toContain("provider");
      }
    }),
    { numRuns: TRIES },
  );
  expect(Math.min(kept.inside, kept.refused)).toBeGreaterThan(TRIES / 100);
});
