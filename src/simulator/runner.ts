import { Engine, type EngineSettings, Sequence } from "./engine.ts";
import { mix, wordFor } from "./tokenizer.ts";

export interface RunnerSettings extends EngineSettings {
  /** Prompt tokens computed per second when nothing else runs. */
  prefillTokensPerSecond: number;
  /** What a step takes beside its prefill, in milliseconds: the time between tokens. */
  stepMs: number;
  seed: number;
}

/** A request in the runner. Callbacks are called as its tokens come. */
export interface Generation {
  readonly sequence: Sequence;
  onToken: (text: string) => void;
  onEnd: () => void;
}

/** Runs an engine in real time: a step's results come when its time is over. */
export class Runner {
  readonly engine: Engine;
  readonly #settings: RunnerSettings;
  readonly #generations = new Map<Sequence, Generation>();
  #nextId = 0;
  #stepping = false;
  #dueMs = 0;

  constructor(settings: RunnerSettings) {
    this.#settings = settings;
    this.engine = new Engine(settings, (sequence) => this.#word(sequence).token);
  }

  start(prompt: readonly number[], maxTokens: number, salt: string): Generation {
    const sequence = new Sequence(this.#nextId++, prompt, maxTokens, salt);
    const generation: Generation = { sequence, onToken: () => {}, onEnd: () => {} };
    this.#generations.set(sequence, generation);
    this.engine.add(sequence);
    if (!this.#stepping) this.#step();
    return generation;
  }

  abort(generation: Generation): void {
    if (this.#generations.delete(generation.sequence)) this.engine.abort(generation.sequence);
  }

  #step(): void {
    this.#stepping = !this.engine.idle;
    if (!this.#stepping) return;
    // Time begins anew after a pause, and otherwise goes on from where the last step was due, so that timers do not drift.
    const now = performance.now();
    if (now - this.#dueMs > 50) this.#dueMs = now;
    const result = this.engine.step();
    this.#dueMs += this.#settings.stepMs + (result.prefillTokens * 1000) / this.#settings.prefillTokensPerSecond;
    setTimeout(
      () => {
        for (const sequence of result.sampled)
          this.#generations.get(sequence)?.onToken(this.#textAt(sequence, sequence.generated - 1));
        for (const sequence of result.finished) {
          this.#generations.get(sequence)?.onEnd();
          this.#generations.delete(sequence);
        }
        this.#step();
      },
      Math.max(0, this.#dueMs - performance.now()),
    );
  }

  #word(sequence: Sequence): { text: string; token: number } {
    return wordFor(mix(this.#settings.seed ^ promptDigest(sequence), sequence.generated));
  }

  #textAt(sequence: Sequence, position: number): string {
    return wordFor(mix(this.#settings.seed ^ promptDigest(sequence), position)).text;
  }
}

/** Different prompts get different answers, the same prompt the same one. */
function promptDigest(sequence: Sequence): number {
  return mix(sequence.tokens[sequence.promptTokens - 1] ?? 0, sequence.promptTokens);
}
