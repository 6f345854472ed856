import type { ClassifiedText, Classifier } from "./classifier.ts";
import { codeClassifier } from "./code.ts";
import { complexityClassifier } from "./complexity.ts";
import { languageClassifier } from "./language.ts";
import type { OwnTag } from "./own-tag.ts";
import { piiClassifier } from "./pii.ts";
import type { RemoteTags } from "./remote-tags.ts";

export const CLASSIFIERS: readonly Classifier[] = [
  complexityClassifier,
  piiClassifier,
  codeClassifier,
  languageClassifier,
];

/** Every tag that a policy may ask for without defining it. */
export const BUILT_IN_TAGS: readonly string[] = CLASSIFIERS.flatMap((classifier) => classifier.tags);

/** To be called when policies that ask for these tags come into use. */
export function prepareClassifiers(usedTags: Iterable<string>): void {
  const used = new Set(usedTags);
  for (const { tags, prepare } of CLASSIFIERS) if (tags.some((tag) => used.has(tag))) prepare?.();
}

/** The tags that policies define, each under an id of its own: two policies may mean different things by one name. */
export type OwnTags = ReadonlyMap<string, OwnTag>;
const NO_OWN_TAGS: OwnTags = new Map();

type Verdict = boolean | undefined;

/**
 * The tags of one request, computed when first asked for and once per family. A classifier that throws, and a tag that
 * nobody computes, leave the answer undefined: policy decides what that means, and never in favour of letting through.
 */
export class RequestTags {
  readonly #text: () => ClassifiedText;
  readonly #own: OwnTags;
  readonly #classifiers: readonly Classifier[];
  readonly #families = new Map<Classifier, ReadonlySet<string> | undefined>();
  readonly #verdicts = new Map<string, Verdict>();
  /** Tags for which somebody else must be asked. */
  readonly #waiting = new Map<string, OwnTag>();
  #classified: ClassifiedText | undefined;

  constructor(
    text: () => ClassifiedText,
    own: OwnTags = NO_OWN_TAGS,
    classifiers: readonly Classifier[] = CLASSIFIERS,
  ) {
    this.#text = text;
    this.#own = own;
    this.#classifiers = classifiers;
  }

  has(tag: string): Verdict {
    if (this.#verdicts.has(tag)) return this.#verdicts.get(tag);
    const own = this.#own.get(tag);
    const verdict = own === undefined ? this.#builtIn(tag) : this.#local(tag, own);
    this.#verdicts.set(tag, verdict);
    return verdict;
  }

  /** Whether a tag was asked for that only `askRemote` can tell. */
  get waits(): boolean {
    return this.#waiting.size > 0;
  }

  /** Asks for the tags that wait, all at once. After it they are known, or known to be unknown. */
  async askRemote(remote: RemoteTags): Promise<void> {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    await Promise.all(
      waiting.map(async ([tag, { remote: question }]) => {
        const text = this.#read();
        if (question === undefined || text === undefined) return;
        this.#verdicts.set(tag, await remote.ask(question, question.textOf(text)));
      }),
    );
  }

  /** The tags found so far. */
  found(): string[] {
    const families = [...this.#families.values()].flatMap((tags) => [...(tags ?? [])]);
    const own = [...this.#verdicts].filter(([tag, verdict]) => verdict === true && this.#own.has(tag));
    return [...new Set([...families, ...own.map(([tag]) => tag)])];
  }

  /** All that was asked, with the answers; `null` where none could be given. */
  verdicts(): Record<string, boolean | null> {
    return Object.fromEntries([...this.#verdicts].map(([tag, verdict]) => [tag, verdict ?? null]));
  }

  #builtIn(tag: string): Verdict {
    const classifier = this.#classifiers.find((c) => c.tags.includes(tag));
    if (classifier === undefined) return undefined;
    if (!this.#families.has(classifier)) this.#families.set(classifier, this.#run(classifier));
    return this.#families.get(classifier)?.has(tag);
  }

  #local(tag: string, own: OwnTag): Verdict {
    const text = this.#read();
    if (text === undefined) return undefined;
    try {
      if (own.holds(text)) return true;
    } catch {
      return undefined;
    }
    if (own.remote === undefined) return false;
    this.#waiting.set(tag, own);
    return undefined;
  }

  #run(classifier: Classifier): ReadonlySet<string> | undefined {
    const text = this.#read();
    try {
      return text && classifier.classify(text);
    } catch {
      return undefined;
    }
  }

  /** Undefined for a request that cannot be read. */
  #read(): ClassifiedText | undefined {
    try {
      this.#classified ??= this.#text();
    } catch {
      return undefined;
    }
    return this.#classified;
  }
}
