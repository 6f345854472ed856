const WORD = /[\p{L}\p{N}]+/gu;
/** Scripts that put no spaces between words: a keyword may stand anywhere in them. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

/** Compiles words and phrases to a test for any of them, whole words, case ignored. Linear in the text. */
export function compileKeywords(keywords: readonly string[]): (text: string) => boolean {
  const byFirstWord = new Map<string, string[][]>();
  const anywhere: string[] = [];
  for (const keyword of keywords) {
    const words = wordsOf(keyword);
    const [first] = words;
    if (first === undefined || UNSPACED.test(keyword)) anywhere.push(keyword.toLowerCase());
    else byFirstWord.set(first, [...(byFirstWord.get(first) ?? []), words]);
  }
  return (text) => {
    if (anywhere.length > 0) {
      const lower = text.toLowerCase();
      if (anywhere.some((keyword) => lower.includes(keyword))) return true;
    }
    if (byFirstWord.size === 0) return false;
    const words = wordsOf(text);
    return words.some((word, at) =>
      byFirstWord.get(word)?.some((phrase) => phrase.every((part, i) => words[at + i] === part)),
    );
  };
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(WORD) ?? [];
}
