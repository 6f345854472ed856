import fc from "fast-check";
import { expect, test } from "vitest";
import { buildPromptChain } from "./prompt-chain.ts";
import { WorkerCache } from "./worker-cache.ts";

const RATIO = 4;
const message = (role: string, text: string) => ({ role, text });
const chainOf = (...segments: { role: string; text: string }[]) => buildPromptChain({ segments, seed: "m" });
const words = (seed: string, length: number) =>
  `${seed} `.repeat(Math.ceil(length / (seed.length + 1))).slice(0, length);

function serve(cache: WorkerCache, chain: ReturnType<typeof chainOf>, outputTokens = 1): void {
  const promptTokens = Math.round(chain.characters / RATIO);
  cache.release(cache.acquire(chain, promptTokens), { reached: true, promptTokens, outputTokens });
}

function cacheOf(capacityTokens: number): WorkerCache {
  const cache = new WorkerCache();
  cache.configure(capacityTokens, 16);
  return cache;
}

test("a prompt is cached up to its last token, in whole blocks", () => {
  const cache = cacheOf(10_000);
  const chain = chainOf(message("user", words("alpha", 4000)));
  expect(cache.match(chain, RATIO).cachedTokens).toBe(0);
  serve(cache, chain);
  const { cachedTokens, promptTokens } = cache.match(chain, RATIO);
  // 4,007 characters with the role's frame: 1,002 tokens; the last must be computed, and blocks have 16.
  expect(promptTokens).toBe(1002);
  expect(cachedTokens).toBe(992);
});

test("a changed character breaks reuse from its block on", () => {
  const cache = cacheOf(10_000);
  const text = words("alpha", 4000);
  serve(cache, chainOf(message("user", text)));
  const changed = `${text.slice(0, 2000)}#${text.slice(2001)}`;
  const { cachedTokens } = cache.match(chainOf(message("user", changed)), RATIO);
  expect(cachedTokens).toBeLessThanOrEqual(500);
  expect(cachedTokens).toBeGreaterThanOrEqual(480);
});

test("only the contiguous start counts, however much of the rest is there", () => {
  const cache = cacheOf(10_000);
  const tail = words("beta", 4000);
  serve(cache, chainOf(message("user", `a${tail}`)));
  expect(cache.match(chainOf(message("user", `b${tail}`)), RATIO).cachedTokens).toBe(0);
});

test("models, adapters and cache salts share nothing", () => {
  const cache = cacheOf(10_000);
  const segments = [message("user", words("alpha", 4000))];
  serve(cache, buildPromptChain({ segments, seed: "m" }));
  expect(cache.match(buildPromptChain({ segments, seed: "m\nsalt" }), RATIO).cachedTokens).toBe(0);
});

test("the next turn of a conversation finds the answer too", () => {
  const cache = cacheOf(10_000);
  const question = message("user", words("why", 4000));
  serve(cache, chainOf(question), 200);
  const next = chainOf(question, message("assistant", words("because", 800)), message("user", "and then?"));
  const { cachedTokens } = cache.match(next, RATIO);
  // 1,002 prompt tokens and 199 of the 200 generated: the last one is never computed.
  expect(cachedTokens).toBe(Math.floor((1002 + 199) / 16) * 16);
  const other = chainOf(question, message("user", "and then?"));
  expect(cache.match(other, RATIO).cachedTokens).toBeLessThanOrEqual(1002);
});

test("when space is short, the tail of what was used longest ago goes first", () => {
  const cache = cacheOf(2000);
  const [a, b] = [chainOf(message("user", words("alpha", 4000))), chainOf(message("user", words("beta", 4000)))];
  serve(cache, a);
  serve(cache, b);
  serve(cache, chainOf(message("user", words("gamma", 1600))));
  const left = cache.match(a, RATIO).cachedTokens;
  expect(left).toBeGreaterThan(400);
  expect(left).toBeLessThan(700);
  expect(cache.match(b, RATIO).cachedTokens).toBe(992);
});

test("what runs is not evicted, and what never reached the worker leaves no trace", () => {
  const cache = cacheOf(1200);
  const running = chainOf(message("user", words("alpha", 4000)));
  const lease = cache.acquire(running, 1002);
  serve(cache, chainOf(message("user", words("beta", 4000))));
  expect(cache.match(running, RATIO).cachedTokens).toBe(992);
  cache.release(lease, { reached: false });
  expect(cache.match(running, RATIO).cachedTokens).toBe(0);
});

test("a worker that restarted under a request holds nothing of it, and nobody else's links are let go", () => {
  const cache = cacheOf(1200);
  const chain = chainOf(message("user", words("alpha", 4000)));
  const before = cache.acquire(chain, 1002);
  cache.clear();
  const after = cache.acquire(chain, 1002);
  cache.release(before, { reached: true, promptTokens: 900, outputTokens: 5 });
  expect(cache.usedTokens).toBe(62 * 16);
  // Still pinned by the second request: another prompt of the cache's size cannot push it out.
  serve(cache, chainOf(message("user", words("beta", 4000))));
  expect(cache.match(chain, RATIO).cachedTokens).toBe(992);
  cache.release(after, { reached: false });
  expect(cache.match(chain, RATIO).cachedTokens).toBe(0);
});

test("what a worker turns out to have lost tells what else it has lost: all that is older", () => {
  const cache = cacheOf(100_000);
  const chains = ["alpha", "beta", "gamma"].map((name) => chainOf(message("user", words(name, 4000))));
  for (const chain of chains) serve(cache, chain);
  const [oldest, lost, youngest] = chains;
  if (oldest === undefined || lost === undefined || youngest === undefined) throw new Error("three chains");
  const lease = cache.acquire(lost, 1002);
  cache.release(lease, { reached: true, promptTokens: 1002, outputTokens: 1 });
  cache.correct(lease, 992, 976);
  expect(cache.match(oldest, RATIO).cachedTokens).toBe(992);
  cache.correct(lease, 992, 0);
  expect([oldest, lost, youngest].map((chain) => cache.match(chain, RATIO).cachedTokens)).toEqual([0, 992, 992]);
});

test("token ids need no ratio: blocks are exact", () => {
  const cache = cacheOf(10_000);
  const promptTokenIds = Array.from({ length: 100 }, (_, i) => i * 31);
  const chain = buildPromptChain({ segments: [], promptTokenIds, seed: "m" });
  cache.release(cache.acquire(chain, 100), { reached: true, promptTokens: 100, outputTokens: 1 });
  expect(cache.match(chain, 4)).toEqual({ cachedTokens: 96, promptTokens: 100 });
});

test("never promises more than the prompt, and never exceeds the capacity when nothing runs", () => {
  const prompt = fc.record({ prefix: fc.nat(3), length: fc.integer({ min: 1, max: 3000 }), output: fc.nat(300) });
  fc.assert(
    fc.property(fc.integer({ min: 200, max: 3000 }), fc.array(prompt, { maxLength: 30 }), (capacity, prompts) => {
      const cache = cacheOf(capacity);
      for (const { prefix, length, output } of prompts) {
        const chain = chainOf(message("system", words(`prefix${prefix}`, 500)), message("user", words("q", length)));
        const { cachedTokens, promptTokens } = cache.match(chain, RATIO);
        expect(cachedTokens).toBeLessThan(promptTokens);
        expect(cachedTokens % 16).toBe(0);
        serve(cache, chain, output);
        expect(cache.usedTokens).toBeLessThanOrEqual(capacity + 1);
      }
    }),
    {
      // An answer that was known and grew, where everything else is pinned.
      examples: [
        [
          200,
          [
            { prefix: 3, length: 5, output: 0 },
            { prefix: 3, length: 5, output: 73 },
          ],
        ],
      ],
    },
  );
});
