import type { InferenceModel } from "../api/inference-model.ts";
import type { Price } from "../api/inference-provider.ts";
import { parseQuantity } from "../api/quantity.ts";
import { BUILT_IN_TAGS, type OwnTags, RequestTags } from "../classify/tags.ts";
import type { Configuration } from "../handler/configuration.ts";
import type { Candidate, PoolState } from "../policy/facts.ts";
import { pathOfApi } from "../protocols/protocols.ts";
import { costOf } from "../providers/cost.ts";
import type { Provider } from "../providers/provider.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { ExplainedRequest } from "../telemetry/explanation.ts";
import { nameOfTag, type Situation } from "./situation.ts";
import type { World, WrittenProvider, WrittenRequest, WrittenWorker } from "./world-schema.ts";

/** A Wednesday, so that office hours hold where a case says nothing of time. */
const DEFAULT_TIME = "2026-06-03T12:00:00Z";
const DEFAULT_PROMPT_TOKENS = 100;
const CHARACTERS_PER_TOKEN = 4;
const EXPECTED_OUTPUT_TOKENS = 300;
const WORKER_TTFT_MS = 100;
const PROVIDER_TTFT_MS = 800;
const ANSWER_MS = 1000;

/** Puts one world on top of another: single fields of requests and backends win, `null` takes a backend away. */
export function mergeWorlds(below: World, above: World): World {
  return {
    request: { ...below.request, ...above.request },
    workers: mergeNamed(below.workers, above.workers),
    providers: mergeNamed(below.providers, above.providers),
  };
}

function mergeNamed<T extends object>(below: Record<string, T | null> = {}, above: Record<string, T | null> = {}) {
  const names = [...new Set([...Object.keys(below), ...Object.keys(above)])];
  return Object.fromEntries(
    names.map((name): [string, T | null] => {
      const entry = above[name];
      if (entry === null) return [name, null];
      return [name, { ...below[name], ...entry } as T];
    }),
  );
}

/**
 * The situation that a written world describes.
 * @param usualModel what backends serve that say nothing
 */
export function situationOf(
  world: World,
  usualModel: string,
  snapshot: Snapshot,
  configuration: Configuration,
): Situation {
  const request = requestOf(world.request ?? {}, snapshot, configuration);
  const pricing: Pricing = {
    request,
    prices: configuration.prices,
    providers: new Map(configuration.providers.map((provider) => [provider.name, provider])),
    usualModels: usualModels(usualModel, configuration, snapshot.models),
  };
  const workers = present(world.workers);
  const candidates = [
    ...workers.flatMap(([name, worker]) => workerCandidates(name, worker, pricing)),
    ...present(world.providers).flatMap(([name, provider]) => providerCandidates(name, provider, pricing)),
  ];
  return { route: world.request?.route ?? "", request, pools: poolsOf(workers), candidates };
}

interface Pricing {
  request: ExplainedRequest;
  prices: ReadonlyMap<string, Price>;
  providers: ReadonlyMap<string, Provider>;
  usualModels: readonly string[];
}

function usualModels(model: string, { catalogue }: Configuration, declared: readonly InferenceModel[]) {
  const meant = catalogue.resolve(model);
  // A class that nobody declared has no models; its backends would serve nothing at all.
  return meant.length > 0 ? meant : declared.map(({ metadata, spec }) => spec.modelName ?? metadata.name);
}

function requestOf(
  written: WrittenRequest,
  snapshot: Snapshot,
  { catalogue, ownTags }: Configuration,
): ExplainedRequest {
  const { model = "", api = "chat", tenant = "default", prompt, maxTokens, headers = {}, reached = [] } = written;
  const length = prompt === undefined ? DEFAULT_PROMPT_TOKENS : Math.ceil(prompt.length / CHARACTERS_PER_TOKEN);
  const labels = snapshot.tenants.find(({ metadata }) => metadata.name === tenant)?.metadata.labels;
  return {
    api,
    path: written.path ?? pathOfApi(api),
    askedModel: model,
    models: catalogue.resolve(model),
    tenant,
    tenantLabels: written.tenantLabels ?? labels ?? {},
    stream: written.stream ?? false,
    promptTokens: written.promptTokens === undefined ? length : parseQuantity(written.promptTokens),
    ...(maxTokens === undefined ? {} : { maxTokens: parseQuantity(maxTokens) }),
    offersTools: written.tools ?? false,
    imageCount: written.images === true ? 1 : 0,
    conversationPercent: written.percent ?? 50,
    epochMs: Date.parse(written.time ?? DEFAULT_TIME),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    tags: tagsOf(written, ownTags),
    exceeded: reached,
  };
}

/** Tags by name, else by the real classifiers on the prompt, else they do not hold. */
function tagsOf(
  { tags = [], unknownTags = [], prompt }: WrittenRequest,
  ownTags: OwnTags,
): Record<string, boolean | null> {
  const computed = new RequestTags(() => ({ everything: [prompt ?? ""], lastUser: prompt ?? "" }), ownTags);
  const tell = (id: string): boolean | null => {
    const name = nameOfTag(id);
    if (unknownTags.includes(name)) return null;
    if (tags.includes(name)) return true;
    return prompt === undefined ? false : (computed.has(id) ?? null);
  };
  return Object.fromEntries([...tags, ...unknownTags, ...allTags(ownTags)].map((id) => [id, tell(id)]));
}

/** The ids of all tags that there are. */
export function allTags(ownTags: OwnTags): string[] {
  return [...BUILT_IN_TAGS, ...ownTags.keys()];
}

function present<T>(named: Record<string, T | null> = {}): [name: string, entry: T][] {
  return Object.entries(named).flatMap(([name, entry]): [string, T][] => (entry === null ? [] : [[name, entry]]));
}

function workerCandidates(name: string, worker: WrittenWorker, pricing: Pricing): Candidate[] {
  const cachedTokens = worker.cachedTokens === undefined ? 0 : parseQuantity(worker.cachedTokens);
  return (worker.models ?? pricing.usualModels).map((model) => ({
    ...commonState(worker, WORKER_TTFT_MS),
    model,
    type: "Local",
    name,
    queuedPrompts: orUnknown(worker.queuedPrompts),
    runningPrompts: orUnknown(worker.runningPrompts),
    kvCacheUsage: orUnknown(worker.kvCacheUsage),
    cachedTokens,
    cost: worker.cost ?? costFor(pricing.prices.get(model), cachedTokens, pricing.request),
  }));
}

function providerCandidates(name: string, written: WrittenProvider, pricing: Pricing): Candidate[] {
  const declared = pricing.providers.get(name);
  if (declared?.takes(pricing.request.api) === false) return [];
  const models = written.models ?? (declared === undefined ? pricing.usualModels : [...declared.models.keys()]);
  return models.map((model) => ({
    ...commonState(written, declared?.expectedTtftMs(model) ?? PROVIDER_TTFT_MS),
    labels: { ...declared?.labels, ...written.labels },
    model,
    type: "Provider",
    name,
    queuedPrompts: undefined,
    runningPrompts: undefined,
    kvCacheUsage: undefined,
    cachedTokens: 0,
    cost: written.cost ?? costFor(declared?.priceOf(model), 0, pricing.request),
  }));
}

function commonState(written: WrittenProvider, usualTtftMs: number) {
  const { predictedTTFT, predictedE2E, labels = {}, healthy = true, errorRate = 0 } = written;
  const predictedTtftMs = predictedTTFT === undefined ? usualTtftMs : parseQuantity(predictedTTFT);
  const predictedE2eMs = predictedE2E === undefined ? predictedTtftMs + ANSWER_MS : parseQuantity(predictedE2E);
  return { labels, healthy, errorRate, predictedTtftMs, predictedE2eMs, harmMs: 0 };
}

/** As written: absent is 0, null is unknown. */
function orUnknown(written: number | null | undefined): number | undefined {
  return written === null ? undefined : (written ?? 0);
}

function costFor(
  price: Price | undefined,
  cachedTokens: number,
  { promptTokens, maxTokens }: ExplainedRequest,
): number {
  const outputTokens = Math.min(maxTokens ?? EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS);
  return costOf(price, promptTokens, Math.min(cachedTokens, promptTokens), outputTokens);
}

const DEFAULT_POOL = "pool";

/** What the healthy workers of each pool do as a whole, and under "" those of all. */
function poolsOf(workers: readonly [string, WrittenWorker][]): Record<string, PoolState> {
  const names = ["", ...workers.map(([, worker]) => worker.pool ?? DEFAULT_POOL)];
  return Object.fromEntries(
    [...new Set(names)].map((name) => {
      const members = workers
        .map(([, worker]) => worker)
        .filter((worker) => worker.healthy !== false && (name === "" || (worker.pool ?? DEFAULT_POOL) === name));
      const usage = sum(members.map((worker) => orUnknown(worker.kvCacheUsage)));
      return [
        name,
        {
          queuedPrompts: sum(members.map((worker) => orUnknown(worker.queuedPrompts))),
          runningPrompts: sum(members.map((worker) => orUnknown(worker.runningPrompts))),
          kvCacheUsage: usage === undefined || members.length === 0 ? undefined : usage / members.length,
          healthyWorkers: members.length,
        },
      ];
    }),
  );
}

/** A sum of which one part is unknown is unknown. */
function sum(values: readonly (number | undefined)[]): number | undefined {
  return values.reduce(
    (total: number | undefined, value) => (total === undefined || value === undefined ? undefined : total + value),
    0,
  );
}
