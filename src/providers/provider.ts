import type { InferenceProvider, Price, ProviderModel } from "../api/inference-provider.ts";
import type { ApiName } from "../api/request-match.ts";
import { keyOf } from "../api/resource.ts";

const DEFAULT_EXPECTED_TTFT_MS = 800;
const REGION_LABEL = "topology.kubernetes.io/region";

type ProviderType = InferenceProvider["spec"]["type"];
const OPENAI_APIS: readonly ApiName[] = ["chat", "completions", "responses", "embeddings"];
/** The APIs that each type takes; undefined: whatever comes, as another vLLM would. */
const APIS: Record<ProviderType, readonly ApiName[] | undefined> = {
  OpenAI: OPENAI_APIS,
  Bedrock: ["chat"],
  Databricks: ["chat", "completions", "embeddings"],
  Anthropic: ["messages", "countTokens"],
  OpenAICompatible: undefined,
};

/** The base URL of a provider: its own, or its type's. */
export function endpointOf({ type, endpoint, region }: InferenceProvider["spec"]): string {
  if (endpoint !== undefined) return endpoint;
  if (type === "Anthropic") return "https://api.anthropic.com";
  return type === "Bedrock" ? `https://bedrock-runtime.${region}.amazonaws.com/openai/v1` : "https://api.openai.com";
}

/** The header that carries a provider's API key, and what stands before the key in it. */
export function keyHeaderOf(type: ProviderType): { name: string; prefix: string } {
  return type === "Anthropic" ? { name: "x-api-key", prefix: "" } : { name: "authorization", prefix: "Bearer " };
}

/** A backend outside, as declared. What is learned of it is in `ProviderState`. */
export class Provider {
  readonly key: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly models: ReadonlyMap<string, ProviderModel>;
  readonly #apis: readonly ApiName[] | undefined;
  readonly #basePath: string;

  constructor(resource: InferenceProvider) {
    const { type, region, models } = resource.spec;
    this.key = keyOf(resource);
    this.name = resource.metadata.name;
    this.labels = { ...resource.metadata.labels, ...(region === undefined ? {} : { [REGION_LABEL]: region }) };
    this.models = new Map(models.map((model) => [model.name, model]));
    this.#apis = APIS[type];
    this.#basePath = new URL(endpointOf(resource.spec)).pathname.replace(/\/$/, "");
  }

  takes(api: ApiName): boolean {
    return this.#apis?.includes(api) ?? true;
  }

  /** What the provider calls a model of ours. */
  nameFor(model: string): string {
    return this.models.get(model)?.providerName ?? model;
  }

  /** The path of an API there: `/v1/...` under the endpoint's own path, which replaces `/v1` if it has one. */
  pathFor(apiPath: string): string {
    return this.#basePath === "" ? apiPath : this.#basePath + apiPath.replace(/^\/v1/, "");
  }

  /** Milliseconds to expect before any answer came. */
  expectedTtftMs(model: string): number {
    return this.models.get(model)?.expectedTtftMs ?? DEFAULT_EXPECTED_TTFT_MS;
  }

  priceOf(model: string): Price | undefined {
    return this.models.get(model)?.price;
  }
}
