import { pino } from "pino";
import type { DecisionExplanation } from "./explanation.ts";
import type { DecisionRecord, OutcomeRecord, Recorder } from "./records.ts";

/** A line of the decision log: a decision, or what came of one. */
export type DecisionLogLine = DecisionExplanation | { id: string; outcome: OutcomeRecord };

const BUFFERED_BYTES = 8 << 10;
const FLUSH_EVERY_MS = 1000;
/** Decisions whose outcome is still to be written. */
const MAX_OPEN = 100_000;

/** Writes explained decisions and their outcomes as JSON lines. Never waits on the request path. */
export class DecisionLog implements Recorder {
  readonly #file: ReturnType<typeof pino.destination>;
  readonly #open = new Set<string>();
  readonly #flusher: NodeJS.Timeout;

  /** @param failed called when the file cannot be written; decisions go on */
  constructor(path: string, failed: (error: Error) => void) {
    this.#file = pino.destination({ dest: path, append: true, sync: false, mkdir: true, minLength: BUFFERED_BYTES });
    this.#file.on("error", failed);
    this.#flusher = setInterval(() => this.#file.flush(), FLUSH_EVERY_MS).unref();
  }

  explained(explanation: DecisionExplanation): void {
    if (this.#open.size < MAX_OPEN && explanation.decision.kind === "route") this.#open.add(explanation.id);
    this.#write(explanation);
  }

  ended(decision: DecisionRecord, outcome: OutcomeRecord): void {
    if (this.#open.delete(decision.id)) this.#write({ id: decision.id, outcome });
  }

  decided(): void {}
  refused(): void {}

  /** Opens the file anew, after it was moved away. */
  reopen(): void {
    this.#file.reopen();
  }

  close(): void {
    clearInterval(this.#flusher);
    this.#file.flushSync();
    this.#file.end();
  }

  #write(line: DecisionLogLine): void {
    this.#file.write(`${JSON.stringify(line)}\n`);
  }
}
