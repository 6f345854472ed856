import { eld } from "eld/extrasmall";
import { expect, test } from "vitest";
import { languageClassifier } from "./language.ts";

const languageOf = (lastUser: string) => [...languageClassifier.classify({ lastUser, everything: [lastUser] })];

test("there is a tag for each language that the detector tells apart", () => {
  const { Languages } = eld.info() as { Languages: Record<string, string> };
  expect([...languageClassifier.tags].sort()).toEqual(
    Object.values(Languages)
      .map((code) => `language-${code}`)
      .sort(),
  );
});

test.each([
  ["Guten Morgen, könnten Sie mir bitte sagen, wann der nächste Zug fährt?", "language-de"],
  ["Could you please tell me when the next train to the airport leaves?", "language-en"],
  ["Pourriez-vous me dire à quelle heure part le prochain train ?", "language-fr"],
  ["次の電車は何時に出発しますか。教えてください。", "language-ja"],
])("%s is %s", (text, tag) => {
  expect(languageOf(text)).toEqual([tag]);
});

test("too little to tell is no language", () => {
  expect(languageOf("")).toEqual([]);
  expect(languageOf("ok")).toEqual([]);
});
