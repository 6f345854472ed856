import type { Classifier } from "./classifier.ts";

const FENCE = /^[ \t]*(?:```|~~~)/m;
/** Lines that only program text has: statements, declarations, calls, closing braces, shell prompts, diff hunks. */
const CODE_LINE =
  /^(?:.*[;{}]$|\s*(?:import|from|export|const|let|var|def|class|function|func|fn|public|private|static|return|if|for|while|elif|else|#include|package|use|SELECT|INSERT|UPDATE|CREATE)\b.*[({:;]|\s*[\w.]+\(.*\)[;:]?$|\s*[)\]}]+[,;]?$|@@ .* @@|[+-]{3} |\$ \w)/;
const MAX_LINES = 400;
const MIN_CODE_LINES = 3;
const MIN_SHARE = 0.3;

/** `code`: the last user turn carries program text, in a fence or bare. Talk about programming alone is not code. */
export const codeClassifier: Classifier = {
  tags: ["code"],
  classify: (text) => new Set(hasCode(text.lastUser) ? ["code"] : []),
};

function hasCode(text: string): boolean {
  if (FENCE.test(text)) return true;
  const lines = text
    .split("\n", MAX_LINES)
    .filter((line) => line.trim() !== "")
    .map((line) => line.slice(0, 200));
  const code = lines.filter((line) => CODE_LINE.test(line)).length;
  return code >= MIN_CODE_LINES && code / lines.length >= MIN_SHARE;
}
