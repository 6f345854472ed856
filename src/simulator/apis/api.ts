/** A request as an API gave it. */
export interface SimulatedRequest {
  prompt: readonly number[];
  maxTokens: number | undefined;
  stream: boolean;
  salt: string;
}

/** Tokens of a finished or running answer. */
export interface Counts {
  promptTokens: number;
  cachedTokens: number;
  outputTokens: number;
}

/** An answer being made: what each moment writes. Strings are event-stream text, ready to send. */
export interface AnswerStream {
  start(counts: Counts): string;
  token(text: string, last: boolean): string;
  end(counts: Counts): string;
}

/** One generating API of vLLM's. */
export interface SimulatedApi {
  path: string;
  /** A message for a 400 if the body is not this API's. */
  read(body: Record<string, unknown>): SimulatedRequest | string;
  stream(id: string, body: Record<string, unknown>): AnswerStream;
  whole(id: string, body: Record<string, unknown>, text: string, tokenIds: readonly number[], counts: Counts): object;
}

export function event(data: object, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}

export function tokenCap(value: unknown): number | undefined {
  return typeof value === "number" && value > 0 ? value : undefined;
}

export function saltOf(body: Record<string, unknown>): string {
  return typeof body.cache_salt === "string" ? body.cache_salt : "";
}

/** OpenAI's usage with vLLM's details. */
export function openaiUsage({ promptTokens, cachedTokens, outputTokens }: Counts) {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + outputTokens,
    completion_tokens: outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

export function wantsUsage(body: Record<string, unknown>): boolean {
  return (body.stream_options as { include_usage?: unknown } | undefined)?.include_usage === true;
}
