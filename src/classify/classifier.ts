/** What a classifier reads of a request. */
export interface ClassifiedText {
  /** All of the prompt: system, history, tool results and the last turn, one entry a part. */
  everything: readonly string[];
  /** The last user turn. */
  lastUser: string;
}

/** Computes a family of tags. Pure and quick: it runs on the request path. */
export interface Classifier {
  /** The tags it can give. */
  readonly tags: readonly string[];
  /** Does at once what would take long at the first request. */
  prepare?(): void;
  classify(text: ClassifiedText): ReadonlySet<string>;
}
