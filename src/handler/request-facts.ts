import type { RequestTags } from "../classify/tags.ts";
import type { RequestFacts } from "../policy/facts.ts";
import type { InferenceRequest } from "../protocols/protocol.ts";
import type { Tenant } from "../tenancy/tenant-directory.ts";
import type { CandidateFinder } from "./candidates.ts";
import type { RequestHead } from "./request-head.ts";

/** So much of a conversation's beginning tells it from others. */
const TELLING_CHARACTERS = 2000;
const TELLING_TOKEN_IDS = 64;

/** What rules can see of a request. */
export function factsOf(
  head: RequestHead,
  request: InferenceRequest,
  tenant: Tenant,
  finder: CandidateFinder,
  tags: RequestTags,
  epochMs: number,
): RequestFacts {
  const { api, model, stream, maxTokens, offersTools, imageCount } = request;
  return {
    api,
    path: head.path,
    model,
    askedModel: model,
    tenant: tenant.name,
    tenantLabels: tenant.labels,
    stream,
    promptTokens: finder.promptTokens(model),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    offersTools,
    imageCount,
    headers: head.headers,
    get conversationPercent() {
      return conversationPercent(request);
    },
    epochMs,
    hasTag: (tag) => tags.has(tag),
    pool: (name) => finder.pool(name),
  };
}

/** Where in 0 to 100 a conversation falls: all its turns begin alike, up to the first user turn. */
export function conversationPercent({ segments, promptTokenIds }: InferenceRequest): number {
  const firstUser = segments.findIndex((segment) => segment.role === "user" || segment.role === "prompt");
  const beginning = segments.slice(0, firstUser + 1).map(({ role, text }) => `${role}\n${text}`);
  const ids = promptTokenIds?.slice(0, TELLING_TOKEN_IDS).join(" ") ?? "";
  // The first user turn tells more than what all conversations share, so it is looked at first.
  const text = [...beginning.reverse(), ids].join("\n").slice(0, TELLING_CHARACTERS);
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // FNV-1a leaves its high bits poorly mixed for short texts (murmur3's finalizer).
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000) * 100;
}
