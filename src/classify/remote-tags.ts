import { createHash } from "node:crypto";
import type { RemoteQuestion } from "./own-tag.ts";

/** Posts `{text}` as JSON and gives the answer's JSON; rejects when there is none in time. */
export type PostJson = (url: string, body: unknown, timeoutMs: number) => Promise<unknown>;

const MAX_CACHED = 10_000;

/** Asks HTTP classifiers, and remembers their answers. Texts are remembered by digest only. */
export class RemoteTags {
  readonly #post: PostJson;
  readonly #now: () => number;
  readonly #answers = new Map<string, { verdict: boolean; untilMs: number }>();

  constructor(post: PostJson, now: () => number) {
    this.#post = post;
    this.#now = now;
  }

  /** Undefined when the classifier fails, is late, or says neither yes nor no. */
  async ask(question: RemoteQuestion, text: string): Promise<boolean | undefined> {
    const key = createHash("sha256").update(`${question.url}\n${question.atLeast}\n${text}`).digest("base64");
    const known = this.#answers.get(key);
    if (known !== undefined && known.untilMs > this.#now()) return known.verdict;
    let answer: unknown;
    try {
      answer = await this.#post(question.url, { text }, question.timeoutMs);
    } catch {
      return undefined;
    }
    const verdict = verdictOf(answer, question.atLeast);
    if (verdict !== undefined && question.cacheSeconds > 0) this.#remember(key, verdict, question.cacheSeconds);
    return verdict;
  }

  #remember(key: string, verdict: boolean, seconds: number): void {
    this.#answers.delete(key);
    this.#answers.set(key, { verdict, untilMs: this.#now() + seconds * 1000 });
    const oldest = this.#answers.keys().next().value;
    if (this.#answers.size > MAX_CACHED && oldest !== undefined) this.#answers.delete(oldest);
  }
}

function verdictOf(answer: unknown, atLeast: number): boolean | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  const { match, score } = answer as { match?: unknown; score?: unknown };
  if (typeof match === "boolean") return match;
  return typeof score === "number" && Number.isFinite(score) ? score >= atLeast : undefined;
}
