import {
  CLUSTER_HEADER,
  DECISION_ID,
  DECISION_NAMESPACE,
  DESTINATION_ENDPOINT,
  HEADER_PREFIX,
  LB_NAMESPACE,
  poolCluster,
  providerCluster,
  ROUTE_NAMESPACE,
} from "../api/wire.ts";
import { type JsonBody, withModel } from "../protocols/json-body.ts";
import type { Worker } from "../workers/worker.ts";
import type { BackendCandidate } from "./candidates.ts";
import type { HeaderChanges, Metadata } from "./ext-proc/messages.ts";
import type { PlainValue } from "./grpc/proto.ts";
import type { RequestHead } from "./request-head.ts";

/** Attempts that our gateway's routes allow: the choice and its fallbacks. */
export const MAX_ATTEMPTS = 4;

/** The candidate's own name for the model, which goes upstream. */
export function upstreamModel(candidate: BackendCandidate): string {
  return candidate.type === "Provider" ? candidate.provider.nameFor(candidate.model) : candidate.model;
}

/**
 * The attempts that may follow each other in Envoy: they share one body and one path, and local ones one cluster.
 * A backend outside keeps a place in the list, since it is there for the case that all inside fail.
 */
export function attemptsOf(ranking: readonly BackendCandidate[], head: RequestHead, most: number): BackendCandidate[] {
  const [chosen, ...rest] = ranking;
  if (chosen === undefined) return [];
  const pathOf = (candidate: BackendCandidate) =>
    candidate.type === "Provider" ? candidate.provider.pathFor(head.path) : head.path;
  const pool = [chosen, ...rest].find((candidate) => candidate.type === "Local")?.worker.pool;
  const usable = rest.filter(
    (candidate) =>
      upstreamModel(candidate) === upstreamModel(chosen) &&
      pathOf(candidate) === pathOf(chosen) &&
      (head.acrossClusters || clusterOf(candidate) === clusterOf(chosen)) &&
      (candidate.type === "Provider" || candidate.worker.pool === pool),
  );
  const attempts = [chosen, ...usable].slice(0, most);
  const outside = usable.find((candidate) => candidate.type === "Provider");
  if (most > 1 && outside !== undefined && !attempts.includes(outside)) attempts[most - 1] = outside;
  return attempts;
}

/** How to reach one worker without having read the request. */
export function dispatchUnread(worker: Worker, head: RequestHead): Dispatch {
  const cluster = poolCluster(worker.pool);
  const ours = head.observe !== undefined;
  const set = { [DESTINATION_ENDPOINT]: worker.address, ...(ours ? { [CLUSTER_HEADER]: cluster } : {}) };
  const metadata: Metadata = { [LB_NAMESPACE]: { [DESTINATION_ENDPOINT]: worker.address } };
  if (ours) metadata[ROUTE_NAMESPACE] = priorityGroups([cluster]);
  return { changes: { set, remove: foreignHeaders(head) }, metadata, body: undefined };
}

/** The metadata that Envoy's priority_group cluster specifier reads: the cluster of each attempt. */
function priorityGroups(clusters: readonly string[]): { [key: string]: PlainValue } {
  return {
    priority_groups: clusters.map((name, i) => ({
      name: `attempt-${i}`,
      clusters: [{ cluster_name: name, weight: 1 }],
    })),
  };
}

export interface Dispatch {
  changes: HeaderChanges;
  metadata: Metadata;
  /** Replaces the client's body; undefined: its bytes go on untouched. */
  body: Buffer | undefined;
}

/** What Envoy must be told for a request to reach its attempts in order. */
export function dispatch(
  decisionId: string,
  attempts: readonly BackendCandidate[],
  head: RequestHead,
  body: JsonBody,
  requestedModel: string,
): Dispatch {
  const local = attempts.flatMap((candidate) => (candidate.type === "Local" ? [candidate.worker.address] : []));
  const set: Record<string, string> = {};
  const metadata: Metadata = { [DECISION_NAMESPACE]: { [DECISION_ID]: decisionId } };
  // Encoded responses could not be read for usage, here or in Envoy.
  const remove = ["accept-encoding", "content-encoding", ...foreignHeaders(head)];
  if (local.length > 0) {
    set[DESTINATION_ENDPOINT] = local.join(",");
    metadata[LB_NAMESPACE] = { [DESTINATION_ENDPOINT]: local.join(",") };
  } else remove.push(DESTINATION_ENDPOINT);
  const clusters = attempts.map(clusterOf);
  const [first] = attempts;
  if (head.observe !== undefined && clusters[0] !== undefined) {
    set[CLUSTER_HEADER] = clusters[0];
    metadata[ROUTE_NAMESPACE] = priorityGroups(clusters);
  }
  if (first?.type === "Provider") set[":path"] = first.provider.pathFor(head.path);
  const model = first === undefined ? requestedModel : upstreamModel(first);
  const rewritten = model === requestedModel ? undefined : withModel(body, model);
  return { changes: { set, remove }, metadata, body: rewritten };
}

function clusterOf(candidate: BackendCandidate): string {
  return candidate.type === "Provider" ? providerCluster(candidate.provider.key) : poolCluster(candidate.worker.pool);
}

/** Headers in our name space can only be a client's. */
function foreignHeaders(head: RequestHead): string[] {
  return [...head.headers.keys()].filter((name) => name.startsWith(HEADER_PREFIX));
}
