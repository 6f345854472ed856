import type { InferenceProvider, ProviderModel } from "../api/inference-provider.ts";
import { keyOf } from "../api/resource.ts";

const DEFAULT_EXPECTED_TTFT_MS = 800;

/** A backend outside, as the pipeline uses it. */
export class Provider {
  readonly key: string;
  readonly name: string;
  readonly models: ReadonlyMap<string, ProviderModel>;
  readonly #basePath: string;
  readonly #ttftMs = new Map<string, number>();

  constructor(resource: InferenceProvider) {
    this.key = keyOf(resource);
    this.name = resource.metadata.name;
    this.models = new Map(resource.spec.models.map((model) => [model.name, model]));
    this.#basePath = new URL(resource.spec.endpoint).pathname.replace(/\/$/, "");
  }

  /** What the provider calls a model of ours. */
  nameFor(model: string): string {
    return this.models.get(model)?.providerName ?? model;
  }

  /** The path of an API there: `/v1/...` under the endpoint's own path, which replaces `/v1` if it has one. */
  pathFor(apiPath: string): string {
    return this.#basePath === "" ? apiPath : this.#basePath + apiPath.replace(/^\/v1/, "");
  }

  expectedTtftMs(model: string): number {
    return this.#ttftMs.get(model) ?? this.models.get(model)?.expectedTtftMs ?? DEFAULT_EXPECTED_TTFT_MS;
  }

  learnTtft(model: string, observedMs: number): void {
    const expected = this.expectedTtftMs(model);
    this.#ttftMs.set(model, expected + (observedMs - expected) * 0.2);
  }

  /** US dollars expected for a request; 0 where no price is known. */
  cost(model: string, promptTokens: number, outputTokens: number): number {
    const price = this.models.get(model)?.price;
    return price === undefined ? 0 : (promptTokens * price.input + outputTokens * price.output) / 1e6;
  }
}
