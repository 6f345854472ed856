import type { RecentDecision } from "../src/telemetry/recent-decisions.ts";

const HEADER = ["tenant", "api", "asked -> served model", "rule", "worker", "cached: said", "was", "TTFT: said", "was"];
const WIDTHS = [13, 9, 28, 26, 9, 12, 6, 11, 9];
const POLL_MS = 250;
const ROWS_PER_POLL = 2;

/** Prints decisions as the admin port reports them: all of them are counted, a few a second are shown. */
export class DecisionsTable {
  readonly #adminUrl: string;
  readonly #seen = new Set<string>();
  readonly rules = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(adminUrl: string) {
    this.#adminUrl = adminUrl;
  }

  start(): void {
    console.log(line(HEADER));
    this.#timer = setInterval(() => void this.#poll(ROWS_PER_POLL), POLL_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#poll(0);
  }

  async #poll(rows: number): Promise<void> {
    const response = await fetch(`${this.#adminUrl}/state`);
    const { recent } = (await response.json()) as { recent: RecentDecision[] };
    const fresh = recent.filter(({ decision, outcome }) => outcome !== undefined && !this.#seen.has(decision.id));
    for (const { decision } of fresh) {
      this.#seen.add(decision.id);
      this.rules.set(decision.rule, (this.rules.get(decision.rule) ?? 0) + 1);
    }
    for (const entry of fresh.slice(-rows || fresh.length)) if (rows > 0) console.log(line(cells(entry)));
  }
}

function cells({ decision, outcome }: RecentDecision): string[] {
  const model =
    decision.requestedModel === decision.model ? decision.model : `${decision.requestedModel} -> ${decision.model}`;
  const observed = decision.stream && outcome?.ttftMs !== undefined ? `${outcome.ttftMs.toFixed(0)} ms` : "-";
  return [
    decision.tenant,
    decision.api,
    model,
    decision.rule.replace("smart-semantic-routing/", "").replace(/^.*\//, ""),
    outcome?.servedBy ?? decision.backend,
    String(decision.predictedCachedTokens),
    String(outcome?.cachedTokens ?? "-"),
    decision.stream ? `${decision.predictedTtftMs.toFixed(0)} ms` : "-",
    observed,
  ];
}

function line(columns: string[]): string {
  return columns
    .map((text, i) => (i < 5 ? text.slice(0, WIDTHS[i]).padEnd(WIDTHS[i] ?? 0) : text.padStart(WIDTHS[i] ?? 0)))
    .join(" ");
}
