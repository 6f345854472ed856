import { randomUUID } from "node:crypto";
import { RemoteTags } from "../classify/remote-tags.ts";
import { errorBody } from "../protocols/errors.ts";
import { type JsonBody, parseJsonBody } from "../protocols/json-body.ts";
import { modelsListBody } from "../protocols/models-list.ts";
import type { InferenceRequest, Protocol, RequestError, Result } from "../protocols/protocol.ts";
import { dialectOf, MODELS_PATH, protocolOf } from "../protocols/protocols.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { DecisionExplanation } from "../telemetry/explanation.ts";
import type { Recorder } from "../telemetry/records.ts";
import { TokenLimiter } from "../tenancy/token-limiter.ts";
import { Charges, limitHeaders } from "./charges.ts";
import { classifiedText } from "./classified-text.ts";
import { type Configuration, compileConfiguration } from "./configuration.ts";
import { decisionRecord } from "./decision-record.ts";
import { decodeBody } from "./decode-body.ts";
import { attemptsOf, type Dispatch, dispatch, dispatchUnread, MAX_ATTEMPTS } from "./dispatch.ts";
import { explain } from "./explanation.ts";
import type { Fleet } from "./fleet.ts";
import { Flight } from "./flight.ts";
import { refusalOf } from "./refusals.ts";
import type { RequestHead } from "./request-head.ts";
import type { HandlerSettings, Surroundings } from "./settings.ts";
import { ShadowCopies } from "./shadow.ts";
import { type Moment, type Subject, subjectOf, type Weighed, weigh } from "./weigh.ts";

/** What is to be done with a request. */
export type Verdict =
  | ({ kind: "forward"; flight: Flight } & Dispatch)
  | ({ kind: "pass" } & Dispatch)
  | { kind: "answer"; status: number; headers: Record<string, string>; body: string };

/** A body that was read. */
interface ReadBody {
  request: InferenceRequest;
  body: JsonBody;
  /** The bytes to send on when they are not those that came. */
  decoded: Buffer | undefined;
}

const SWEEP_LIMITS_AFTER_MS = 31 * 86_400_000;

/** The pipeline: a request in, one decision out. Everything it knows is in the configuration and the fleet. */
export class InferenceHandler {
  readonly settings: HandlerSettings;
  readonly #fleet: Fleet;
  readonly #recorder: Recorder;
  readonly #surroundings: Surroundings;
  readonly #limiter: TokenLimiter;
  readonly #remoteTags: RemoteTags;
  readonly #shadows: ShadowCopies;
  #configuration: Configuration;
  #rotation = 0;

  constructor(
    snapshot: Snapshot,
    fleet: Fleet,
    recorder: Recorder,
    surroundings: Surroundings,
    settings: HandlerSettings,
  ) {
    this.#configuration = compileConfiguration(snapshot, settings.trustedHeaders);
    this.#fleet = fleet;
    this.#recorder = recorder;
    this.#surroundings = surroundings;
    this.#limiter = new TokenLimiter(surroundings.epochMs);
    this.#remoteTags = new RemoteTags(surroundings.postJson, surroundings.now);
    this.#shadows = new ShadowCopies(fleet, recorder, surroundings.sendCopy, surroundings.now);
    this.settings = settings;
  }

  /** Requests that begin after this are decided by the new snapshot. */
  configure(snapshot: Snapshot): void {
    this.#configuration = compileConfiguration(snapshot, this.settings.trustedHeaders);
    this.#limiter.sweep(SWEEP_LIMITS_AFTER_MS);
  }

  /** Decides on a whole request. `receivedMs` is when its first byte came. */
  async decide(head: RequestHead, bytes: Buffer, receivedMs: number): Promise<Verdict> {
    const early = this.#answerByPath(head);
    if (early !== undefined) return early;
    const read = await this.#read(head, bytes);
    if (!read.ok) return this.refuse(head, read.error);
    const { request, body, decoded } = read.value;
    const subject = this.#subject(head, request, body);
    const explains = this.#surroundings.explains();
    // From the last weighing to the pick nothing waits: two requests never see the same load.
    const weighed = await this.#weigh(subject, explains);
    const verdict = this.#carryOut(subject, weighed, body, receivedMs, explains);
    if (verdict.kind === "forward" && decoded !== undefined) verdict.body ??= decoded;
    return verdict;
  }

  /** What would be decided on a request now, and why; without effect. */
  async explain(head: RequestHead, bytes: Buffer): Promise<Result<DecisionExplanation>> {
    const read = await this.#read(head, bytes);
    if (!read.ok) return read;
    const subject = this.#subject(head, read.value.request, read.value.body);
    const weighed = await this.#weigh(subject, true);
    return { ok: true, value: explain(subject, weighed, randomUUID(), this.settings.loggedHeaders) };
  }

  /** Reads a request: its API by its path, its body once. */
  async #read(head: RequestHead, bytes: Buffer): Promise<Result<ReadBody>> {
    const protocol = protocolOf(head.path);
    if (protocol === undefined) return { ok: false, error: notFound(head.path) };
    const unfit = unfitHead(head);
    if (unfit !== undefined) return { ok: false, error: unfit };
    const plain = await decodeBody(bytes, head.headers.get("content-encoding"), this.settings.maxBodyBytes);
    if (!plain.ok) return plain;
    return readBody(protocol, plain.value, plain.value !== bytes);
  }

  #subject(head: RequestHead, request: InferenceRequest, body: JsonBody): Subject {
    return subjectOf(head, request, () => classifiedText(request, body.value), this.#configuration);
  }

  /** Weighs, asks whoever must be asked for tags, and weighs again with what they said. */
  async #weigh(subject: Subject, traced: boolean): Promise<Weighed> {
    const rotation = this.#rotation++;
    let weighed = weigh(subject, this.#moment(rotation), traced);
    while (subject.tags.waits) {
      await subject.tags.askRemote(this.#remoteTags);
      weighed = weigh(subject, this.#moment(rotation), traced);
    }
    return weighed;
  }

  #moment(rotation: number): Moment {
    return {
      fleet: this.#fleet,
      limiter: this.#limiter,
      nowMs: this.#surroundings.now(),
      epochMs: this.#surroundings.epochMs(),
      rotation,
    };
  }

  #carryOut(subject: Subject, weighed: Weighed, body: JsonBody, receivedMs: number, explains: boolean): Verdict {
    const { head, request, tenant } = subject;
    const { decision, model } = weighed.decided;
    const id = randomUUID();
    if (explains) this.#recorder.explained?.(explain(subject, weighed, id, this.settings.loggedHeaders));
    if (decision.kind !== "route") {
      const error = refusalOf(decision, request.model, weighed.modelsKnown);
      // A name that nobody has must not become a metric label: clients could make any number of them.
      const known = decision.kind !== "empty" || decision.cause !== "unknown-model";
      const headers = decision.kind === "limited" ? limitHeaders(this.#limiter, decision.charge) : {};
      return this.refuse(head, error, { rule: decision.rule, tenant: tenant.name, model: known ? model : "" }, headers);
    }
    const most = head.observe === undefined ? 1 + this.settings.foreignFallbacks : MAX_ATTEMPTS;
    const attempts = attemptsOf(decision.ranking, head, most);
    const [chosen] = attempts;
    if (chosen === undefined) throw new Error("a routed request has a candidate");
    const record = decisionRecord(id, subject, decision, chosen, attempts);
    const charges = new Charges(this.#limiter, decision.charges, {
      promptTokens: chosen.promptTokens,
      maxTokens: request.maxTokens,
    });
    const flight = new Flight(record, [chosen, ...attempts.slice(1)], charges, this.#fleet, this.#recorder, receivedMs);
    this.#recorder.decided(record);
    const { shadow, rule } = decision;
    if (shadow !== undefined && this.#surroundings.random() * 100 < (shadow.percent ?? 100))
      this.#shadows.copy(rule, shadow.model, head.path, request, body, weighed.finder);
    return { kind: "forward", flight, ...dispatch(record.id, attempts, head, body, request.model) };
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
    const pools = this.#poolsOf(head);
    const healthy = [...this.#fleet.workers.all()].filter(
      (worker) => worker.healthy && (pools?.has(worker.pool) ?? true),
    );
    const worker = healthy.sort((a, b) => a.inFlight - b.inFlight)[0];
    if (worker === undefined)
      return this.refuse(head, { status: 503, code: "no_healthy_backend", message: "No healthy backend." });
    return { kind: "pass", ...dispatchUnread(worker, head) };
  }

  #modelsList(head: RequestHead): string {
    const pools = this.#poolsOf(head);
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

  #poolsOf(head: RequestHead): ReadonlySet<string> | undefined {
    const { scopes } = this.#configuration;
    return (scopes.get(head.routeName ?? "") ?? scopes.get(""))?.pools;
  }

  /** An error in the shape that clients of the path expect. */
  refuse(
    head: RequestHead,
    error: RequestError,
    known: { rule?: string; tenant?: string; model?: string } = {},
    headers: Record<string, string> = {},
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
      headers: {
        "content-type": "application/json",
        ...headers,
        ...(retry === undefined ? {} : { "retry-after": retry }),
      },
      body: errorBody(dialectOf(head.path), error),
    };
  }
}

function notFound(path: string): RequestError {
  return { status: 404, code: "unknown_path", message: `There is no API at ${path.slice(0, 200)}` };
}

function unfitHead(head: RequestHead): RequestError | undefined {
  if (head.method !== "POST") {
    return {
      status: 405,
      code: "method_not_allowed",
      message: `${head.path} takes POST, not ${head.method}`,
    };
  }
  const contentType = head.headers.get("content-type");
  if (contentType === undefined || /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType)) return undefined;
  return {
    status: 415,
    code: "unsupported_media_type",
    message: `content-type must be application/json, not ${contentType}`,
  };
}

function readBody(protocol: Protocol, bytes: Buffer, decoded: boolean): Result<ReadBody> {
  const body = parseJsonBody(bytes);
  if (!body.ok) return body;
  const request = protocol.read(body.value.value);
  if (!request.ok) return request;
  return { ok: true, value: { request: request.value, body: body.value, decoded: decoded ? bytes : undefined } };
}
