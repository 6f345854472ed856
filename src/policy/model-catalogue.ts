import type { InferenceModel } from "../api/inference-model.ts";
import type { ModelSelector } from "../api/request-match.ts";
import { compileGlob } from "./glob.ts";
import { compileLabels, type Labels } from "./label-selector.ts";

interface Entry {
  family: string | undefined;
  capabilities: readonly string[];
  tier: string | undefined;
  labels: Labels;
}

const NO_LABELS: Labels = {};
const CLASS = "class/";
const ANY_OF_FAMILY = "/*";

/** What the InferenceModels say of model names: aliases, classes, labels. A name without an entry is just a name. */
export class ModelCatalogue {
  readonly #entries = new Map<string, Entry>();
  readonly #byAlias = new Map<string, string>();

  constructor(models: readonly InferenceModel[]) {
    for (const { metadata, spec } of models) {
      const name = spec.modelName ?? metadata.name;
      const { family, capabilities = [], tier, aliases = [] } = spec;
      this.#entries.set(name, { family, capabilities, tier, labels: metadata.labels ?? NO_LABELS });
      for (const alias of aliases) this.#byAlias.set(alias, name);
    }
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /**
   * The models that a client may mean: the name itself, the model of an alias, or all of a class (`class/coding`,
   * `qwen-3.8/*`). Empty when a class has none.
   */
  resolve(asked: string): readonly string[] {
    if (this.#entries.size === 0) return [asked];
    const alias = this.#byAlias.get(asked);
    if (alias !== undefined) return [alias];
    if (asked.startsWith(CLASS)) {
      const name = asked.slice(CLASS.length);
      return this.#having((entry) => entry.capabilities.includes(name) || entry.tier === name);
    }
    if (asked.endsWith(ANY_OF_FAMILY)) {
      const family = asked.slice(0, -ANY_OF_FAMILY.length);
      return this.#having((entry) => entry.family === family);
    }
    return [asked];
  }

  /** Compiles a selector to a test of a model's name. Throws a message for the author. */
  compile(selector: string | ModelSelector): (model: string) => boolean {
    if (typeof selector === "string") return this.#compileName(selector);
    const { names, family, capability, labels } = selector;
    const tests: ((model: string) => boolean)[] = [];
    if (names !== undefined) {
      const globs = names.map((name) => this.#compileName(name));
      tests.push((model) => globs.some((glob) => glob(model)));
    }
    if (family !== undefined) {
      const glob = compileGlob(family);
      tests.push((model) => glob(this.#entries.get(model)?.family ?? ""));
    }
    if (capability !== undefined)
      tests.push((model) => this.#entries.get(model)?.capabilities.includes(capability) === true);
    if (labels !== undefined) {
      const matches = compileLabels(labels);
      tests.push((model) => matches(this.#entries.get(model)?.labels ?? NO_LABELS));
    }
    return (model) => tests.every((test) => test(model));
  }

  /** The names that a selector lists, if it lists nothing but names; undefined if it must search. */
  listed(selector: ModelSelector): readonly string[] | undefined {
    const { names, family, capability, labels } = selector;
    if (family !== undefined || capability !== undefined || labels !== undefined) return undefined;
    if (names === undefined || names.some((name) => name.includes("*"))) return undefined;
    return [...new Set(names.flatMap((name) => this.resolve(name)))];
  }

  /** An alias means its model, a class all of its models. */
  #compileName(name: string): (model: string) => boolean {
    const glob = compileGlob(name);
    const meant = this.resolve(name).filter((model) => model !== name);
    return meant.length === 0 ? glob : (model) => meant.includes(model) || glob(model);
  }

  #having(test: (entry: Entry) => boolean): string[] {
    return [...this.#entries].filter(([, entry]) => test(entry)).map(([name]) => name);
  }
}
