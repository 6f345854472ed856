import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { eld } from "eld/extrasmall";
import type { Classifier } from "./classifier.ts";

/** Longer text says nothing more about its language. */
const MAX_CHARACTERS = 1000;

/** ISO 639-1 codes of the languages that the detector tells apart. */
const CODES =
  "am ar az be bg bn ca cs da de el en es et eu fa fi fr gu he hi hr hu hy is it ja ka kn ko ku lo lt lv ml mr ms nl no or pa pl pt ro ru sk sl sq sr sv ta te th tl tr uk ur vi yo zh";

type Detector = typeof eld;
let detector: Detector | undefined;

/** The language of the last user turn, as `language-de` (ISO 639-1); no tag where a text is too short to tell. */
export const languageClassifier: Classifier = {
  tags: CODES.split(" ").map((code) => `language-${code}`),
  prepare() {
    load();
  },
  classify(text) {
    const found = load().detect(text.lastUser.slice(0, MAX_CHARACTERS));
    return new Set(found.language !== "" && found.isReliable() ? [`language-${found.language}`] : []);
  },
};

/** Its tables take 100 MB of memory: only those have them whose policies ask for a language. */
function load(): Detector {
  if (detector === undefined) {
    const require = createRequire(import.meta.url);
    detector = (require(fileURLToPath(import.meta.resolve("eld/extrasmall"))) as { eld: Detector }).eld;
  }
  return detector;
}
