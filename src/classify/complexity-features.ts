/** Words that ask for little, and words that ask for much, in the languages most traffic comes in. */
const EASY =
  /\b(?:hi|hello|hey|thanks?|thank you|translate|rephrase|reword|spell|define|capital of|what time|list|name|convert|summari[sz]e|fix (?:the )?(?:typo|grammar)|lowercase|uppercase|yes|no|ok(?:ay)?)\b|\b(?:hallo|danke|übersetze|bonjour|merci|traduis|hola|gracias|traduce|ciao|grazie|traduci|olá|obrigad[oa]|traduza)\b|你好|谢谢|翻译|こんにちは|ありがとう|翻訳|안녕|번역|привет|спасибо|переведи/giu;
const HARD =
  /\b(?:prove|proof|derive|theorem|lemma|optimi[sz]e|algorithm|complexity|design|architect(?:ure)?|debug|refactor|implement|trade-?offs?|step by step|analy[sz]e|evaluate|critique|integral|eigen\w*|differential|equation|concurren\w+|distributed|formali[sz]e|counterexample|asymptotic|why does|explain why|compare)\b|\b(?:beweise|entwirf|analysiere|démontre|conçois|analyse|demuestra|diseña|analiza|dimostra|progetta|demonstre|projete)\b|证明|设计|分析|推导|証明|設計|分析せよ|증명|설계|분석|докажи|спроектируй|проанализируй/giu;

/** The features' order is that of the weights in `complexity-weights.json`. */
export const COMPLEXITY_FEATURES = [
  "bias",
  "logLength",
  "logLengthSquared",
  "questions",
  "newlines",
  "digitShare",
  "symbolShare",
  "upperShare",
  "longWordShare",
  "meanWordLength",
  "distinctWordShare",
  "codeFence",
  "easyWords",
  "hardWords",
] as const;

/** Only the beginning and the end of a long prompt are looked at. */
const EDGE_CHARACTERS = 2000;

/** Surface features of a prompt, each roughly between 0 and 2. */
export function complexityFeatures(prompt: string): Float64Array {
  const text =
    prompt.length > 2 * EDGE_CHARACTERS ? prompt.slice(0, EDGE_CHARACTERS) + prompt.slice(-EDGE_CHARACTERS) : prompt;
  let digits = 0;
  let symbols = 0;
  let upper = 0;
  let wide = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 48 && code <= 57) digits++;
    else if (code >= 65 && code <= 90) upper++;
    else if (
      (code >= 33 && code <= 47) ||
      (code >= 58 && code <= 64) ||
      (code >= 91 && code <= 96) ||
      (code >= 123 && code <= 126)
    )
      symbols++;
    else if (code >= 0x2e80) wide++;
  }
  const words = text.toLowerCase().match(/[\p{L}']+/gu) ?? [];
  const length = Math.max(1, text.length);
  const count = Math.max(1, words.length);
  // An East Asian character carries about as much as three Latin ones.
  const logLength = Math.log10(prompt.length + 2 * wide + 1) / 2;
  return Float64Array.of(
    1,
    logLength,
    logLength * logLength,
    Math.min(2, countOf(text, "?")) / 2,
    Math.min(20, countOf(text, "\n")) / 10,
    (5 * digits) / length,
    (5 * symbols) / length,
    (5 * upper) / length,
    words.filter((word) => word.length > 8).length / count,
    words.reduce((sum, word) => sum + word.length, 0) / count / 6,
    new Set(words).size / count,
    text.includes("```") ? 1 : 0,
    Math.min(4, text.match(EASY)?.length ?? 0) / 2,
    Math.min(4, text.match(HARD)?.length ?? 0) / 2,
  );
}

function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) count++;
  return count;
}
