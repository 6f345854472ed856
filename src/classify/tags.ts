import type { ClassifiedText, Classifier } from "./classifier.ts";
import { complexityClassifier } from "./complexity.ts";
import { piiClassifier } from "./pii.ts";

export const CLASSIFIERS: readonly Classifier[] = [complexityClassifier, piiClassifier];

/** Every tag that a policy may ask for. */
export const KNOWN_TAGS: readonly string[] = CLASSIFIERS.flatMap((classifier) => classifier.tags);

/**
 * The tags of one request, computed when first asked for and once per family. A classifier that throws, and a tag that
 * nobody computes, leave the answer undefined: policy decides what that means, and never in favour of letting through.
 */
export class RequestTags {
  readonly #text: () => ClassifiedText;
  readonly #classifiers: readonly Classifier[];
  readonly #results = new Map<Classifier, ReadonlySet<string> | undefined>();

  constructor(text: () => ClassifiedText, classifiers: readonly Classifier[] = CLASSIFIERS) {
    this.#text = text;
    this.#classifiers = classifiers;
  }

  has(tag: string): boolean | undefined {
    const classifier = this.#classifiers.find((c) => c.tags.includes(tag));
    if (classifier === undefined) return undefined;
    if (!this.#results.has(classifier)) this.#results.set(classifier, this.#run(classifier));
    return this.#results.get(classifier)?.has(tag);
  }

  /** The tags found so far, for the decision's record. */
  found(): string[] {
    return [...this.#results.values()].flatMap((tags) => [...(tags ?? [])]);
  }

  #run(classifier: Classifier): ReadonlySet<string> | undefined {
    try {
      return classifier.classify(this.#text());
    } catch {
      return undefined;
    }
  }
}
