import { randomUUID } from "node:crypto";
import { RequestTags } from "../classify/tags.ts";
import { evaluate } from "../policy/evaluate.ts";
import type { RequestFacts } from "../policy/facts.ts";
import { errorBody } from "../protocols/errors.ts";
import { type JsonBody, parseJsonBody } from "../protocols/json-body.ts";
import { modelsListBody } from "../protocols/models-list.ts";
import type { InferenceRequest, Protocol, RequestError } from "../protocols/protocol.ts";
import { dialectOf, MODELS_PATH, protocolOf } from "../protocols/protocols.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { DecisionRecord, Recorder } from "../telemetry/records.ts";
import { type BackendCandidate, CandidateFinder } from "./candidates.ts";
import { classifiedText } from "./classified-text.ts";
import { type Configuration, compileConfiguration, type RouteScope } from "./configuration.ts";
import { decodeBody } from "./decode-body.ts";
import { attemptsOf, type Dispatch, dispatch, dispatchUnread, MAX_ATTEMPTS } from "./dispatch.ts";
import type { Fleet } from "./fleet.ts";
import { Flight } from "./flight.ts";
import { refusalFor, rejection } from "./refusals.ts";
import type { RequestHead } from "./request-head.ts";

export interface HandlerSettings {
  /** Above it: 413. */
  maxBodyBytes: number;
  /** Paths beside the APIs' that are let through to any healthy worker, unread by policies. */
  allowedPaths: readonly string[];
  /** Adds response headers that say who served a request and why. */
  debugHeaders: boolean;
  /** Further endpoints named to somebody else's Envoy; those with ORIGINAL_DST clusters understand only one. */
  foreignFallbacks: number;
}

export const DEFAULT_HANDLER: HandlerSettings = {
  maxBodyBytes: 32 << 20,
  allowedPaths: [],
  debugHeaders: false,
  foreignFallbacks: 0,
};

/** What is to be done with a request. */
export type Verdict =
  | ({ kind: "forward"; flight: Flight } & Dispatch)
  | ({ kind: "pass" } & Dispatch)
  | { kind: "answer"; status: number; headers: Record<string, string>; body: string };

/** The pipeline: a request in, one decision out. Everything it knows is in the configuration and the fleet. */
export class InferenceHandler {
  readonly settings: HandlerSettings;
  readonly #fleet: Fleet;
  readonly #recorder: Recorder;
  readonly #now: () => number;
  #configuration: Configuration;
  #rotation = 0;

  constructor(snapshot: Snapshot, fleet: Fleet, recorder: Recorder, now: () => number, settings: HandlerSettings) {
    this.#configuration = compileConfiguration(snapshot);
    this.#fleet = fleet;
    this.#recorder = recorder;
    this.#now = now;
    this.settings = settings;
  }

  /** Requests that begin after this are decided by the new snapshot. */
  configure(snapshot: Snapshot): void {
    this.#configuration = compileConfiguration(snapshot);
  }

  /** Decides on a whole request. `receivedMs` is when its first byte came. */
  async decide(head: RequestHead, bytes: Buffer, receivedMs: number): Promise<Verdict> {
    const early = this.#answerByPath(head);
    if (early !== undefined) return early;
    const protocol = protocolOf(head.path);
    if (protocol === undefined) return this.refuse(head, notFound(head.path));
    if (head.method !== "POST") {
      return this.refuse(head, {
        status: 405,
        code: "method_not_allowed",
        message: `${head.path} takes POST, not ${head.method}`,
      });
    }
    const contentType = head.headers.get("content-type");
    if (contentType !== undefined && !/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType)) {
      return this.refuse(head, {
        status: 415,
        code: "unsupported_media_type",
        message: `content-type must be application/json, not ${contentType}`,
      });
    }
    const plain = await decodeBody(bytes, head.headers.get("content-encoding"), this.settings.maxBodyBytes);
    if (!plain.ok) return this.refuse(head, plain.error);
    return this.#route(head, protocol, plain.value, plain.value !== bytes, receivedMs);
  }

  /** From here to the pick nothing waits: two requests never see the same load. */
  #route(head: RequestHead, protocol: Protocol, bytes: Buffer, decoded: boolean, receivedMs: number): Verdict {
    const body = parseJsonBody(bytes);
    if (!body.ok) return this.refuse(head, body.error);
    const request = protocol.read(body.value.value);
    if (!request.ok) return this.refuse(head, request.error);
    const verdict = this.#decide(head, request.value, body.value, receivedMs);
    if (verdict.kind === "forward" && decoded) verdict.body ??= bytes;
    return verdict;
  }

  #decide(head: RequestHead, request: InferenceRequest, body: JsonBody, receivedMs: number): Verdict {
    const { tenants, providers } = this.#configuration;
    const scope = this.#scopeOf(head);
    // Behind somebody else's Envoy there is no cluster for a provider.
    const reachable = head.observe === undefined ? [] : providers;
    const finder = new CandidateFinder(
      this.#fleet,
      { pools: scope.pools, subset: head.subset, providers: reachable },
      request,
      this.#now(),
      this.#rotation++,
    );
    const tags = new RequestTags(() => classifiedText(request, body.value));
    const tenant = tenants.tenantOf((name) => head.headers.get(name));
    const decision = evaluate(scope.rules, factsOf(head, request, tenant, finder, tags), (model) => finder.of(model));
    if (decision.kind === "reject")
      return this.refuse(head, rejection(decision.reject), { rule: decision.rule, tenant, model: request.model });
    if (decision.kind === "empty") {
      const cause = head.subset !== undefined && decision.cause === "unknown-model" ? "unhealthy" : decision.cause;
      // A name that nobody has must not become a metric label: clients could make any number of them.
      const model = decision.cause === "unknown-model" ? "" : request.model;
      return this.refuse(head, refusalFor(cause, request.model), { rule: decision.rule, tenant, model });
    }
    const most = head.observe === undefined ? 1 + this.settings.foreignFallbacks : MAX_ATTEMPTS;
    const attempts = attemptsOf(decision.ranking, head, most);
    const [chosen] = attempts;
    if (chosen === undefined) throw new Error("a routed request has a candidate");
    const record = recordOf(request, tenant, decision, chosen, attempts, tags);
    const flight = new Flight(record, [chosen, ...attempts.slice(1)], this.#fleet, this.#recorder, receivedMs);
    this.#recorder.decided(record);
    return { kind: "forward", flight, ...dispatch(record.id, attempts, head, body, request.model) };
  }

  #scopeOf(head: RequestHead): RouteScope {
    const { scopes } = this.#configuration;
    const scope = scopes.get(head.routeName ?? "") ?? scopes.get("");
    if (scope === undefined) throw new Error("there is always a scope for unnamed routes");
    return scope;
  }

  /** What needs no body: the list of models, and paths that a setting lets through. */
  #answerByPath(head: RequestHead): Verdict | undefined {
    if (head.path === MODELS_PATH && head.method === "GET") {
      return {
        kind: "answer",
        status: 200,
        headers: { "content-type": "application/json" },
        body: this.#modelsList(head),
      };
    }
    if (!this.settings.allowedPaths.includes(head.path)) return undefined;
    const { pools } = this.#scopeOf(head);
    const healthy = [...this.#fleet.workers.all()].filter(
      (worker) => worker.healthy && (pools?.has(worker.pool) ?? true),
    );
    const worker = healthy.sort((a, b) => a.inFlight - b.inFlight)[0];
    if (worker === undefined)
      return this.refuse(head, { status: 503, code: "no_healthy_backend", message: "No healthy backend." });
    return { kind: "pass", ...dispatchUnread(worker, head) };
  }

  #modelsList(head: RequestHead): string {
    const { pools } = this.#scopeOf(head);
    const local = [...this.#fleet.workers.all()]
      .filter((worker) => pools?.has(worker.pool) ?? true)
      .flatMap((worker) =>
        [...worker.models].map(([id, { maxModelLen }]) => ({
          id,
          ownedBy: "vllm",
          ...(maxModelLen === undefined ? {} : { maxModelLen }),
        })),
      );
    const outside = this.#configuration.providers.flatMap((provider) =>
      [...provider.models.keys()].map((id) => ({ id, ownedBy: provider.name })),
    );
    return modelsListBody([...outside, ...local]);
  }

  /** An error in the shape that clients of the path expect. */
  refuse(
    head: RequestHead,
    error: RequestError,
    known: { rule?: string; tenant?: string; model?: string } = {},
  ): Verdict {
    this.#recorder.refused({
      tenant: "default",
      model: "",
      rule: "",
      ...known,
      status: error.status,
      code: error.code,
    });
    const retry = error.retryAfterSeconds === undefined ? undefined : String(error.retryAfterSeconds);
    return {
      kind: "answer",
      status: error.status,
      headers: { "content-type": "application/json", ...(retry === undefined ? {} : { "retry-after": retry }) },
      body: errorBody(dialectOf(head.path), error),
    };
  }
}

function notFound(path: string): RequestError {
  return { status: 404, code: "unknown_path", message: `There is no API at ${path.slice(0, 200)}` };
}

function factsOf(
  head: RequestHead,
  request: InferenceRequest,
  tenant: string,
  finder: CandidateFinder,
  tags: RequestTags,
): RequestFacts {
  const { api, model, stream, maxTokens, offersTools, imageCount } = request;
  return {
    api,
    path: head.path,
    model,
    tenant,
    stream,
    promptTokens: finder.promptTokens(model),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    offersTools,
    imageCount,
    header: (name) => head.headers.get(name),
    hasTag: (tag) => tags.has(tag),
  };
}

function recordOf(
  request: InferenceRequest,
  tenant: string,
  decision: { rule: string; notes: string[] },
  chosen: BackendCandidate,
  attempts: readonly BackendCandidate[],
  tags: RequestTags,
): DecisionRecord {
  return {
    id: randomUUID(),
    at: new Date().toISOString(),
    tenant,
    api: request.api,
    requestedModel: request.model,
    model: chosen.model,
    stream: request.stream,
    rule: decision.rule,
    backendType: chosen.type,
    backend: chosen.name,
    fallbacks: attempts.slice(1).map((candidate) => candidate.name),
    tags: tags.found(),
    notes: decision.notes,
    promptTokens: chosen.promptTokens,
    predictedCachedTokens: chosen.cachedTokens,
    predictedTtftMs: chosen.predictedTtftMs,
  };
}
