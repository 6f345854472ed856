import { expect, test } from "vitest";
import { LatencyModel, type PrefillLoad } from "./latency-model.ts";

const load = (uncachedTokens: number, inFlight = 0, queuedTokens = 0): PrefillLoad => ({
  uncachedTokens,
  queuedTokens,
  decoding: inFlight,
  inFlight,
  waiting: 0,
  slots: Number.POSITIVE_INFINITY,
});

/** Park-Miller, from 0 to 1. */
function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** A worker that takes 20 ms and 0.1 ms a token, with 5 % noise, times its slowness. */
function observe(random: () => number, slowness: number, l: PrefillLoad): number {
  return slowness * (20 + 0.1 * (l.uncachedTokens + l.queuedTokens)) * (0.95 + 0.1 * random());
}

test("after 50 requests, first tokens are predicted to within 10 %", () => {
  const model = new LatencyModel();
  const random = uniform(1);
  let error = 0;
  for (let i = 0; i < 150; i++) {
    const l = load(Math.round(random() * 4000), 0, random() < 0.3 ? Math.round(random() * 2000) : 0);
    const observed = observe(random, 1, l);
    if (i >= 50) error += Math.abs(model.predict("w", "m", l).ttftMs - observed) / observed / 100;
    model.learnTtft("w", "m", l, observed);
  }
  expect(error).toBeLessThan(0.1);
});

test("a worker twice as slow as the others is found out in 20 of its requests, and forgiven as quickly", () => {
  const model = new LatencyModel();
  const random = uniform(2);
  const feed = (slowness: number, rounds: number) => {
    for (let i = 0; i < rounds; i++) {
      for (const worker of ["a", "b", "c", "slow"]) {
        const l = load(Math.round(200 + random() * 3000));
        model.learnTtft(worker, "m", l, observe(random, worker === "slow" ? slowness : 1, l));
      }
    }
  };
  feed(1, 20);
  feed(2, 20);
  const probe = load(1000);
  expect(model.predict("slow", "m", probe).ttftMs / model.predict("a", "m", probe).ttftMs).toBeGreaterThan(1.5);
  feed(1, 30);
  expect(model.predict("slow", "m", probe).ttftMs / model.predict("a", "m", probe).ttftMs).toBeLessThan(1.25);
});

test("noise alone makes nobody everyone's favourite", () => {
  const model = new LatencyModel();
  const random = uniform(3);
  for (let i = 0; i < 400; i++) {
    const worker = `w${i % 8}`;
    const l = load(Math.round(200 + random() * 3000));
    model.learnTtft(worker, "m", l, observe(random, 1, l) * (0.8 + 0.4 * random()));
  }
  const predictions = Array.from({ length: 8 }, (_, i) => model.predict(`w${i}`, "m", load(1000)).ttftMs);
  expect(new Set(predictions).size).toBe(1);
});

test("one absurd sample does not turn the model", () => {
  const model = new LatencyModel();
  const random = uniform(4);
  for (let i = 0; i < 100; i++) {
    const l = load(Math.round(random() * 4000));
    model.learnTtft("w", "m", l, observe(random, 1, l));
  }
  const before = model.predict("w", "m", load(2000)).ttftMs;
  model.learnTtft("w", "m", load(2000), 600_000);
  expect(model.predict("w", "m", load(2000)).ttftMs / before).toBeLessThan(1.5);
});

test("waiting for a slot takes as long as it takes for one to come free", () => {
  const model = new LatencyModel();
  // Answers of 101 tokens at 10 ms each: with 8 slots one comes free every 125 ms or so.
  for (let i = 0; i < 200; i++) model.learnDecode("m", load(0, i % 8), 101, 1000);
  const base = model.predict("w", "m", load(100)).ttftMs;
  const waiting = model.predict("w", "m", { ...load(100), waiting: 2, slots: 8 }).ttftMs;
  expect(waiting - base).toBeGreaterThan(200);
  expect(waiting - base).toBeLessThan(300);
});

test("is sane before the first sample: more work and more load take longer; harm counts once it is known", () => {
  const model = new LatencyModel();
  const [idle, long, busy] = [load(100), load(8000), load(100, 10, 4000)].map((l) => model.predict("w", "m", l));
  expect(long?.ttftMs).toBeGreaterThan(idle?.ttftMs ?? 0);
  expect(busy?.ttftMs).toBeGreaterThan(idle?.ttftMs ?? 0);
  expect(idle?.harmMs).toBe(0);
  expect(busy?.harmMs).toBe(0);
  for (let i = 0; i < 20; i++) model.learnDecode("m", load(0, i % 5), 101, 1000 + 100 * (i % 5));
  expect(model.predict("w", "m", load(100, 10, 4000)).harmMs).toBeGreaterThan(0);
});
