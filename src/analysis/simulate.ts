import { counterOf, estimateOf } from "../handler/charges.ts";
import { type Configuration, compileConfiguration } from "../handler/configuration.ts";
import type { Candidate } from "../policy/facts.ts";
import type { Charge, LimitProbe } from "../policy/limit.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { ExplainedDecision } from "../telemetry/explanation.ts";
import { TokenLimiter } from "../tenancy/token-limiter.ts";
import type { LoggedDecision } from "./read-decision-log.ts";
import { decideSituation, type SituationOutcome } from "./situation.ts";

/** What a set of policies would have done with the requests of a log. */
export interface Totals {
  routed: number;
  refused: number;
  /** Of those routed, to providers. */
  outside: number;
  /** US dollars that the routed ones were expected to cost. */
  costUsd: number;
  /** Mean predicted time to the first token of the routed ones, milliseconds; undefined if there are none. */
  meanTtftMs: number | undefined;
}

/** Requests that go elsewhere, in one group for each pair of places. */
export interface Move {
  from: string;
  to: string;
  requests: number;
  costUsd: number;
  /** Mean change of the predicted time to the first token; undefined where one side refuses. */
  ttftMs: number | undefined;
  /** One of them, for `kinfctl explain --request-id`. */
  example: string;
}

export interface Simulation {
  requests: number;
  same: number;
  before: Totals;
  after: Totals;
  /** Most requests first. */
  moves: Move[];
  /** What the log cannot tell, in words. */
  notes: string[];
}

interface Place {
  label: string;
  candidate: Candidate | undefined;
}

/**
 * Replays a decision log through other policies. Each request meets the candidates and the state that it met then: what
 * moved requests would have done to queues and caches is not foretold.
 * @param before absent: compare with what was decided then
 */
export function simulate(
  decisions: readonly LoggedDecision[],
  before: Snapshot | undefined,
  after: Snapshot,
): Simulation {
  const oldReplay = before && new Replay(before);
  const newReplay = new Replay(after);
  const moves = new Map<string, Move & { ttfts: number[] }>();
  const [totalsBefore, totalsAfter] = [new Sum(), new Sum()];
  let same = 0;
  for (const logged of decisions) {
    const was = oldReplay?.decide(logged) ?? recorded(logged);
    const is = newReplay.decide(logged);
    totalsBefore.add(was);
    totalsAfter.add(is);
    if (was.label === is.label) same++;
    else addMove(moves, was, is, logged);
  }
  return {
    requests: decisions.length,
    same,
    before: totalsBefore.totals(),
    after: totalsAfter.totals(),
    moves: [...moves.values()]
      .map(({ ttfts, ...move }) => ({ ...move, ttftMs: mean(ttfts) }))
      .sort((a, b) => b.requests - a.requests),
    notes: [...new Set([...(oldReplay?.notes() ?? []), ...newReplay.notes()])],
  };
}

function addMove(moves: Map<string, Move & { ttfts: number[] }>, was: Place, is: Place, logged: LoggedDecision): void {
  const key = `${was.label}\n${is.label}`;
  const move = moves.get(key) ?? {
    from: was.label,
    to: is.label,
    requests: 0,
    costUsd: 0,
    ttftMs: undefined,
    example: logged.explanation.requestId ?? logged.explanation.id,
    ttfts: [],
  };
  moves.set(key, move);
  move.requests++;
  move.costUsd += (is.candidate?.cost ?? 0) - (was.candidate?.cost ?? 0);
  if (was.candidate && is.candidate) move.ttfts.push(is.candidate.predictedTtftMs - was.candidate.predictedTtftMs);
}

/** Decides the requests of a log one after the other, with counters of its own on the log's clock. */
class Replay {
  readonly #snapshot: Snapshot;
  readonly #configuration: Configuration;
  readonly #limiter: TokenLimiter;
  readonly #untold = new Map<string, number>();
  readonly #providersSeen = new Set<string>();
  readonly #headersSeen = new Set<string>();
  #epochMs = 0;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    this.#configuration = compileConfiguration(snapshot);
    this.#limiter = new TokenLimiter(() => this.#epochMs);
  }

  decide(logged: LoggedDecision): Place {
    const { explanation, outcome } = logged;
    const { request, candidates } = explanation;
    this.#epochMs = request.epochMs;
    const exceeds: LimitProbe = (charge) =>
      this.#limiter.exceededFor(counterOf(charge), estimateOf(charge, expectedOf(logged)));
    const decided = decideSituation(this.#configuration, explanation, exceeds);
    for (const tag of decided.untold) this.#untold.set(tag, (this.#untold.get(tag) ?? 0) + 1);
    for (const candidate of candidates) if (candidate.type === "Provider") this.#providersSeen.add(candidate.name);
    for (const name of Object.keys(request.headers)) this.#headersSeen.add(name);
    const place = placeOf(decided);
    if (decided.decided.decision.kind === "route") {
      for (const charge of decided.decided.decision.charges) this.#charge(charge, logged, place.candidate, outcome);
    }
    return place;
  }

  notes(): string[] {
    const untold = [...this.#untold].map(
      ([tag, times]) =>
        `the tag \`${tag}\` is not in the log for ${times} requests: it counts as one that cannot be told`,
    );
    const unseen = this.#snapshot.providers
      .map(({ metadata }) => metadata.name)
      .filter((name) => !this.#providersSeen.has(name))
      .map((name) => `the provider ${name} is not in the log: nothing can be foretold of it`);
    const headers = headersAskedFor(this.#snapshot)
      .filter((name) => !this.#headersSeen.has(name))
      .map((name) => `the header ${name} is not in the log (\`--log-header ${name}\`): it counts as absent`);
    return [...untold, ...unseen, ...headers];
  }

  #charge(
    charge: Charge,
    logged: LoggedDecision,
    candidate: Candidate | undefined,
    outcome: LoggedDecision["outcome"],
  ) {
    const hold = this.#limiter.hold(counterOf(charge), estimateOf(charge, expectedOf(logged)));
    const { promptTokens = logged.explanation.request.promptTokens, outputTokens } = outcome ?? {};
    const cost = candidate?.cost ?? 0;
    if (charge.limit.tokens === "Cost") this.#limiter.settle(hold, cost);
    else if (outputTokens !== undefined) {
      const used = { Input: promptTokens, Output: outputTokens, Total: promptTokens + outputTokens };
      this.#limiter.settle(hold, used[charge.limit.tokens]);
    }
  }
}

/** Lower-case names of the headers that matches look at; expressions are not searched. */
function headersAskedFor({ policies }: Snapshot): string[] {
  const matches = policies.flatMap(({ spec }) =>
    spec.rules.flatMap(({ matches = [], route }) => [
      ...matches,
      ...(route?.exclude ?? []).flatMap((exclusion) => exclusion.if ?? []),
    ]),
  );
  return [...new Set(matches.flatMap(({ headers = [] }) => headers.map(({ name }) => name.toLowerCase())))];
}

function expectedOf({ explanation: { request } }: LoggedDecision) {
  return { promptTokens: request.promptTokens, maxTokens: request.maxTokens };
}

function placeOf({ decision, decided }: SituationOutcome): Place {
  const candidate = decided.decision.kind === "route" ? decided.decision.ranking[0] : undefined;
  return { label: labelOf(decision), candidate };
}

function recorded({ explanation: { decision, candidates } }: LoggedDecision): Place {
  const chosen =
    decision.kind === "route"
      ? candidates.find(({ name, model }) => name === decision.backend && model === decision.model)
      : undefined;
  return { label: labelOf(decision), candidate: chosen };
}

/** Workers that share a model are one place: which of them it is says nothing about policies. */
function labelOf(decision: ExplainedDecision): string {
  if (decision.kind !== "route") return `refused ${decision.status} ${decision.code}`;
  return decision.type === "Local" ? `${decision.model} on workers` : `${decision.model} at ${decision.backend}`;
}

class Sum {
  #routed = 0;
  #refused = 0;
  #outside = 0;
  #costUsd = 0;
  readonly #ttfts: number[] = [];

  add({ candidate }: Place): void {
    if (candidate === undefined) this.#refused++;
    else {
      this.#routed++;
      if (candidate.type === "Provider") this.#outside++;
      this.#costUsd += candidate.cost;
      this.#ttfts.push(candidate.predictedTtftMs);
    }
  }

  totals(): Totals {
    return {
      routed: this.#routed,
      refused: this.#refused,
      outside: this.#outside,
      costUsd: this.#costUsd,
      meanTtftMs: mean(this.#ttfts),
    };
  }
}

function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}
