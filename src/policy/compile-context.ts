import type { Problem } from "../api/validate.ts";
import type { ModelCatalogue } from "./model-catalogue.ts";

export type Path = readonly (string | number)[];

/** What compiling needs to know, and where it notes mistakes. One for each policy. */
export class CompileContext {
  readonly catalogue: ModelCatalogue;
  readonly problems: Problem[] = [];
  /** Every tag that the policy asks for, with the places that do. */
  readonly tags: { tag: string; path: Path }[] = [];
  readonly #policyKey: string;
  readonly #ownTags: ReadonlySet<string>;

  /** @param ownTags names of the tags that the policy defines */
  constructor(catalogue: ModelCatalogue, policyKey: string, ownTags: readonly string[]) {
    this.catalogue = catalogue;
    this.#policyKey = policyKey;
    this.#ownTags = new Set(ownTags);
  }

  /** The result, or undefined and a problem at `path` when compiling throws. */
  attempt<T>(path: Path, compile: () => T): T | undefined {
    try {
      return compile();
    } catch (error) {
      this.problems.push({ path: [...path], message: (error as Error).message });
      return undefined;
    }
  }

  /** Notes that the policy asks for a tag; gives the id by which the tag is to be asked for. */
  useTag(tag: string, path: Path): string {
    this.tags.push({ tag, path });
    return this.#ownTags.has(tag) ? ownTagId(tag, this.#policyKey) : tag;
  }
}

/** A policy's own tags mean what that policy says, whatever others call by the same name. */
export function ownTagId(tag: string, policyKey: string): string {
  return `${tag}@${policyKey}`;
}
