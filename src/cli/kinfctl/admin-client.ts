import { request } from "undici";
import type { ResourceStatus } from "../../resources/resource-status.ts";
import type { DecisionExplanation } from "../../telemetry/explanation.ts";
import type { RecentDecision } from "../../telemetry/recent-decisions.ts";
import type { OutcomeRecord } from "../../telemetry/records.ts";
import type { WorkerState } from "../fleet-state.ts";
import { UsageError } from "./output.ts";

export const DEFAULT_SERVER = "http://127.0.0.1:9090";
const TIMEOUT_MS = 10_000;

/** What `/state` shows. */
export interface LiveState {
  workers: WorkerState[];
  resources: ResourceStatus[];
  inFlight: number;
  recent: RecentDecision[];
}

export type ExplainedWithOutcome = DecisionExplanation & { outcome?: OutcomeRecord };

/** Asks a handler by its admin port. */
export class AdminClient {
  readonly #server: string;

  constructor(server: string) {
    if (!URL.canParse(server)) throw new UsageError(`--server ${server}: not a URL, for example ${DEFAULT_SERVER}`);
    this.#server = server.replace(/\/$/, "");
  }

  async state(): Promise<LiveState> {
    return (await this.#ask("/state")) as LiveState;
  }

  async decision(id: string): Promise<ExplainedWithOutcome> {
    return (await this.#ask(`/decisions/${encodeURIComponent(id)}`)) as ExplainedWithOutcome;
  }

  /** What would be decided on a body now. */
  async explain(query: URLSearchParams, body: string): Promise<DecisionExplanation> {
    return (await this.#ask(`/explain?${query}`, body)) as DecisionExplanation;
  }

  async #ask(path: string, body?: string): Promise<unknown> {
    const options = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS };
    const posted = body === undefined ? {} : { method: "POST" as const, body };
    const response = await request(this.#server + path, { ...options, ...posted }).catch((error: Error) => {
      throw new UsageError(`${this.#server} cannot be reached (--server): ${error.message}`);
    });
    const text = await response.body.text();
    const answer = parseJson(text);
    if (response.statusCode === 200 && answer !== undefined) return answer;
    const said = (answer as { error?: unknown } | undefined)?.error ?? text.slice(0, 200);
    throw new UsageError(`${this.#server}${path.split("?")[0]}: ${response.statusCode} ${String(said)}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
