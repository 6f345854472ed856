import { eld } from "eld/extrasmall";
import type { Classifier } from "./classifier.ts";

/** Longer text says nothing more about its language. */
const MAX_CHARACTERS = 1000;

/** The language of the last user turn, as `language-de` (ISO 639-1); no tag where a text is too short to tell. */
export const languageClassifier: Classifier = {
  tags: Object.values((eld.info() as { Languages: Record<string, string> }).Languages).map(
    (code) => `language-${code}`,
  ),
  classify(text) {
    const found = eld.detect(text.lastUser.slice(0, MAX_CHARACTERS));
    return new Set(found.language !== "" && found.isReliable() ? [`language-${found.language}`] : []);
  },
};
