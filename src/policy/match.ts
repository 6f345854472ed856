import type { CandidateMatch, NumberRange, RequestMatch } from "../api/inference-policy.ts";
import type { Candidate, RequestFacts, Verdict } from "./facts.ts";
import { compileGlob, compileNames, compileRange } from "./quantity.ts";

export type RequestTest = (facts: RequestFacts) => Verdict;
export type CandidateTest = (candidate: Candidate) => Verdict;

/** Holds if all tests hold; unknown if one is unknown and none fails. */
function allOf<T>(tests: ((subject: T) => Verdict)[]): (subject: T) => Verdict {
  return (subject) => {
    let verdict: Verdict = true;
    for (const test of tests) {
      const one = test(subject);
      if (one === false) return false;
      if (one === undefined) verdict = undefined;
    }
    return verdict;
  };
}

function anyOf<T>(tests: ((subject: T) => Verdict)[]): (subject: T) => Verdict {
  return (subject) => {
    let verdict: Verdict = false;
    for (const test of tests) {
      const one = test(subject);
      if (one === true) return true;
      if (one === undefined) verdict = undefined;
    }
    return verdict;
  };
}

const range = <T>(bounds: NumberRange, read: (subject: T) => number | undefined) => {
  const holds = compileRange(bounds);
  return (subject: T): Verdict => {
    const value = read(subject);
    return value === undefined ? undefined : holds(value);
  };
};

/** A list of alternatives; absent: always. */
export function compileMatches(matches: readonly RequestMatch[] | undefined): RequestTest {
  return matches === undefined ? () => true : anyOf(matches.map(compileRequestMatch));
}

/** Cheap tests come first, so that tags are computed only when all else holds. */
export function compileRequestMatch(match: RequestMatch): RequestTest {
  const tests: RequestTest[] = [];
  const { model, api, tenant, path, headers, stream, promptTokens, maxTokens, tools, images } = match;
  if (model !== undefined) {
    const test = compileNames(model);
    tests.push((facts) => test(facts.model));
  }
  if (api !== undefined) {
    const apis = Array.isArray(api) ? api : [api];
    tests.push((facts) => apis.includes(facts.api));
  }
  if (tenant !== undefined) {
    const test = compileGlob(tenant);
    tests.push((facts) => test(facts.tenant));
  }
  if (path !== undefined) {
    const test = compileGlob(path);
    tests.push((facts) => test(facts.path));
  }
  for (const { name, value } of headers ?? []) {
    const test = value === undefined ? undefined : compileGlob(value);
    tests.push((facts) => {
      const actual = facts.header(name.toLowerCase());
      return actual !== undefined && (test === undefined || test(actual));
    });
  }
  if (stream !== undefined) tests.push((facts) => facts.stream === stream);
  if (promptTokens !== undefined) tests.push(range(promptTokens, (facts) => facts.promptTokens));
  if (maxTokens !== undefined) tests.push(range(maxTokens, (facts) => facts.maxTokens ?? Number.POSITIVE_INFINITY));
  if (tools !== undefined) tests.push((facts) => facts.offersTools === tools);
  if (images !== undefined) tests.push((facts) => facts.imageCount > 0 === images);
  for (const tag of [...(match.tag === undefined ? [] : [match.tag]), ...(match.tags ?? [])])
    tests.push((facts) => facts.hasTag(tag));
  if (match.anyTag !== undefined)
    tests.push(anyOf(match.anyTag.map((tag) => (facts: RequestFacts) => facts.hasTag(tag))));
  return allOf(tests);
}

export function compileCandidateMatch(match: CandidateMatch): CandidateTest {
  const tests: CandidateTest[] = [];
  const { backend, model, queuedPrompts, runningPrompts, kvCacheUsage, predictedTTFT, predictedCachedTokens } = match;
  if (backend?.type !== undefined) tests.push((candidate) => candidate.type === backend.type);
  if (backend?.name !== undefined) {
    const test = compileGlob(backend.name);
    tests.push((candidate) => test(candidate.name));
  }
  if (model !== undefined) {
    const test = compileNames(model);
    tests.push((candidate) => test(candidate.model));
  }
  if (queuedPrompts !== undefined) tests.push(range(queuedPrompts, (candidate) => candidate.queuedPrompts));
  if (runningPrompts !== undefined) tests.push(range(runningPrompts, (candidate) => candidate.runningPrompts));
  if (kvCacheUsage !== undefined) tests.push(range(kvCacheUsage, (candidate) => candidate.kvCacheUsage));
  if (predictedTTFT !== undefined) tests.push(range(predictedTTFT, (candidate) => candidate.predictedTtftMs));
  if (predictedCachedTokens !== undefined)
    tests.push(range(predictedCachedTokens, (candidate) => candidate.cachedTokens));
  return allOf(tests);
}

/** Whether a match looks at load, so that being dropped by it means overload and not prohibition. */
export function looksAtLoad(match: CandidateMatch): boolean {
  return ["queuedPrompts", "runningPrompts", "kvCacheUsage", "predictedTTFT"].some((field) => field in match);
}
