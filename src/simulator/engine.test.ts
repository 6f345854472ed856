import fc from "fast-check";
import { expect, test } from "vitest";
import { Engine, Sequence } from "./engine.ts";

const settings = { blocks: 11, blockTokens: 4, maxRunning: 2, stepTokenBudget: 16 };
const engineOf = (more: Partial<typeof settings> = {}) =>
  new Engine({ ...settings, ...more }, (sequence) => 1000 + sequence.generated);
const ids = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

function run(engine: Engine, ...sequences: Sequence[]): void {
  for (const sequence of sequences) engine.add(sequence);
  for (let step = 0; !engine.idle; step++) {
    if (step > 10_000) throw new Error("the engine never ends");
    engine.step();
  }
}

test("a prompt again: all its full blocks but the one with the last token", () => {
  const engine = engineOf();
  run(engine, new Sequence(0, ids(0, 12), 1, ""));
  const again = new Sequence(1, ids(0, 12), 1, "");
  run(engine, again);
  // Three full blocks, but the last token must be computed: two are reused.
  expect(again.cachedTokens).toBe(8);
  const salted = new Sequence(2, ids(0, 12), 1, "s");
  run(engine, salted);
  expect(salted.cachedTokens).toBe(0);
});

test("generated tokens are cached, all but the last", () => {
  const engine = engineOf();
  const first = new Sequence(0, ids(0, 6), 7, "");
  run(engine, first);
  expect(first.tokens.length).toBe(13);
  const next = new Sequence(1, [...first.tokens, 7, 8], 1, "");
  run(engine, next);
  expect(next.cachedTokens).toBe(12);
});

test("prefill is cut to the step's budget, and a waiting sequence gets what is left", () => {
  const engine = engineOf({ stepTokenBudget: 8 });
  engine.add(new Sequence(0, ids(0, 10), 2, ""));
  engine.add(new Sequence(1, ids(100, 5), 2, ""));
  expect(engine.step()).toMatchObject({ prefillTokens: 8, decodes: 0, sampled: [] });
  expect(engine.step()).toMatchObject({ prefillTokens: 7, decodes: 0 });
  expect(engine.step()).toMatchObject({ prefillTokens: 0, decodes: 2 });
  expect(engine.idle).toBe(true);
});

test("the tail of what was freed first is evicted first", () => {
  const engine = engineOf();
  run(engine, new Sequence(0, ids(0, 16), 1, ""));
  run(engine, new Sequence(1, ids(100, 16), 1, ""));
  // Ten blocks hold two prompts of four full ones; this one needs four: two that are free, and two of the oldest tail.
  run(engine, new Sequence(2, ids(200, 16), 1, ""));
  const again = new Sequence(3, ids(0, 17), 1, "");
  run(engine, again);
  expect(again.cachedTokens).toBe(8);
});

test("when blocks run out the youngest is preempted, and everybody still ends", () => {
  const engine = engineOf({ blocks: 9 });
  const [a, b] = [new Sequence(0, ids(0, 12), 16, ""), new Sequence(1, ids(100, 12), 16, "")];
  run(engine, a, b);
  expect([a.generated, b.generated]).toEqual([16, 16]);
  expect(engine.counters.preemptions).toBeGreaterThan(0);
  expect(engine.kvCacheUsage).toBe(0);
});

test("any load ends with every block given back, also when clients leave", () => {
  const request = fc.record({
    start: fc.nat(2),
    length: fc.integer({ min: 1, max: 24 }),
    output: fc.integer({ min: 1, max: 12 }),
    leaves: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(request, { maxLength: 20 }), (requests) => {
      const engine = engineOf();
      const sequences = requests.map(
        ({ start, length, output }, id) => new Sequence(id, ids(start * 50, length), output, ""),
      );
      sequences.forEach((sequence, i) => {
        engine.add(sequence);
        engine.step();
        if (requests[i]?.leaves) engine.abort(sequence);
      });
      run(engine);
      expect(engine.kvCacheUsage).toBe(0);
      sequences.forEach((sequence, i) => {
        if (!requests[i]?.leaves) expect(sequence.generated).toBe(requests[i]?.output);
      });
    }),
  );
});
