// How long a decision takes under many rules: node benchmarks/policy-evaluation.ts [--rules 200]
// Rules of ten kinds in turn, none of which holds but the last: the longest way through a policy. Beside it the same by
// the evaluator that tests compare with, which is written sentence by sentence, and by rules in CEL.
import { parseArgs } from "node:util";
import type { PolicyRule } from "../src/api/inference-policy.ts";
import type { RequestMatch } from "../src/api/request-match.ts";
import { decide } from "../src/policy/decide.ts";
import type { Candidate } from "../src/policy/facts.ts";
import { naiveOutcome } from "../test/support/naive-policy.ts";
import { candidate, compileRules, facts, inWords, policyOf, supplyOf } from "../test/support/policy-world.ts";

const { values } = parseArgs({ options: { rules: { type: "string", default: "200" } } });
const count = Number(values.rules);
const ROUNDS = 9;
const SECONDS_A_ROUND = 0.4;

const KINDS: ((i: number) => RequestMatch)[] = [
  (i) => ({ tenant: `team-${i}` }),
  (i) => ({ model: `other-${i}` }),
  (i) => ({ model: `qwen-${i}/*` }),
  (i) => ({ headers: [{ name: "x-customer", value: `customer-${i}` }] }),
  (i) => ({ promptTokens: { greaterThan: `${32 + i}k` } }),
  (i) => ({ tenant: { labels: `tier = gold-${i}` }, api: ["chat"] }),
  (i) => ({ path: `/v1/embeddings/${i}` }),
  () => ({ tools: true, stream: true }),
  (i) => ({ pool: { queuedPrompts: { greaterThan: 40 + i } } }),
  (i) => ({ tag: "code", maxTokens: { atMost: 10 + i } }),
];

function rulesOf(matchOf: (i: number) => RequestMatch): PolicyRule[] {
  const missing = Array.from({ length: count - 1 }, (_, i) => ({
    name: `r${i}`,
    matches: [matchOf(i)],
    reject: { message: "no" },
  }));
  return [...missing, { name: "last", route: { select: [{ type: "Local", minimize: "PredictedTTFT" }] } }];
}

const tags = { code: false };
const request = facts({ tenantLabels: { tier: "silver" }, headers: new Map([["x-customer", "somebody"]]), tags });
const candidates: Candidate[] = Array.from({ length: 8 }, (_, i) =>
  candidate(`w${i}`, { predictedTtftMs: 100 + ((i * 37) % 11) }),
);
/** By 37 i mod 11, worked out by hand. */
const order = ["w0", "w3", "w6", "w1", "w4", "w7", "w2", "w5"];

function compiled(matchOf: (i: number) => RequestMatch): () => string {
  const rules = compileRules([policyOf(rulesOf(matchOf))]);
  const supply = supplyOf(candidates);
  return () => inWords(decide(rules, request, [request.askedModel], supply).decision);
}

function naive(): string {
  const { api, path, askedModel, tenant, tenantLabels, stream, promptTokens } = request;
  return naiveOutcome({
    policies: [policyOf(rulesOf(mixed))],
    models: [],
    request: {
      ...{ api, path, askedModel, tenant, stream, promptTokens, tags },
      tenantLabels: { ...tenantLabels },
      maxTokens: undefined,
      tools: false,
      images: false,
      headers: Object.fromEntries(request.headers),
      percent: 50,
    },
    moment: 0,
    pools: { "": { queuedPrompts: 0, runningPrompts: 0, kvCacheUsage: 0, healthyWorkers: 8 } },
    reached: [],
    candidates,
  });
}

/** Of each kind in turn. */
function mixed(i: number): RequestMatch {
  return KINDS[i % KINDS.length]?.(i) ?? {};
}

/** Microseconds a call takes: the median of several rounds, and the spread from the best to the worst. */
function measure(name: string, run: () => string): number {
  for (let i = 0; i < 2000; i++) run();
  const rounds = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    const until = start + SECONDS_A_ROUND * 1000;
    let calls = 0;
    for (; performance.now() < until; calls += 10) for (let i = 0; i < 10; i++) run();
    return ((performance.now() - start) * 1000) / calls;
  }).sort((a, b) => a - b);
  const [best = 0, median = 0, worst = 0] = [rounds[0], rounds[ROUNDS >> 1], rounds.at(-1)];
  console.log(`${name.padEnd(34)}${median.toFixed(1).padStart(10)} us   ${best.toFixed(1)} to ${worst.toFixed(1)}`);
  return median;
}

const plain = compiled(mixed);
const expected = `p/last: ${order.join(" > ")}`;
if (plain() !== expected) throw new Error(`decided ${plain()}, not ${expected}`);
if (naive() !== `p/last: ${order.map((name) => `glm-5.3@${name}`).join(" ")}`) throw new Error(`not ${naive()}`);
console.log(`a decision under ${count} rules, of which the last holds, among ${candidates.length} workers`);
const ours = measure("compiled", plain);
measure(
  "compiled, every rule in CEL",
  compiled((i) => ({ expression: `tenant == 'team-${i}'` })),
);
const theirs = measure("sentence by sentence", naive);
console.log(`the compiled policy is ${(theirs / ours).toFixed(1)} times as fast as the literal one`);
