import type { Classifier } from "./classifier.ts";

/** Finds kinds of personal data by shape and checksum. Says which kinds, never which values. */
export const piiClassifier: Classifier = {
  tags: ["pii-detected", "pii-email", "pii-card", "pii-iban", "pii-ssn", "pii-phone"],
  classify(text) {
    const found = new Set<string>();
    for (const part of text.everything) findPii(part, found);
    if (found.size > 0) found.add("pii-detected");
    return found;
  },
};

function findPii(text: string, found: Set<string>): void {
  if (!found.has("pii-email") && hasEmail(text)) found.add("pii-email");
  for (const [digits, index] of digitRuns(text)) {
    if (!found.has("pii-card") && isCardNumber(digits)) found.add("pii-card");
    else if (!found.has("pii-ssn") && isSsn(text, digits, index)) found.add("pii-ssn");
    else if (!found.has("pii-phone") && isPhone(text, digits, index)) found.add("pii-phone");
  }
  if (!found.has("pii-iban") && hasIban(text)) found.add("pii-iban");
}

const LOCAL_PART = /[\p{L}\p{N}._%+'-]/u;
const DOMAIN = /^[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,62}[.])+\p{L}{2,24}/u;
/** Reserved names (RFC 2606, RFC 6761) are nobody's. */
const RESERVED_DOMAIN = /(?:^|[.])(?:example(?:[.](?:com|net|org))?|test|invalid|localhost)$/i;
const MAX_LOCAL_PART = 64;

/** Looks around each `@`, so that text without one costs a single search. */
function hasEmail(text: string): boolean {
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at + 1)) {
    let start = at;
    while (start > 0 && at - start < MAX_LOCAL_PART && LOCAL_PART.test(text[start - 1] ?? "")) start--;
    if (start === at) continue;
    const domain = DOMAIN.exec(text.slice(at + 1, at + 1 + 254))?.[0];
    if (domain === undefined || RESERVED_DOMAIN.test(domain)) continue;
    // `git@host:path` is a repository, not a person.
    if (text.slice(start, at) === "git" && text[at + 1 + domain.length] === ":") continue;
    return true;
  }
  return false;
}

/** Runs of 7 to 24 digits that may be grouped by single spaces, dots or hyphens. */
function* digitRuns(text: string): Generator<[digits: string, index: number]> {
  for (const match of text.matchAll(/(?<![\p{L}\p{N}.])\d(?:[ .-]?\d){6,23}(?![\p{L}\p{N}])/gu)) {
    yield [match[0].replace(/\D/g, ""), match.index];
  }
}

/** Issuer ranges and lengths (ISO/IEC 7812): Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay, Maestro. */
const CARD_SHAPE =
  /^(?:4\d{12}(?:\d{3})?(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|6(?:011|5\d\d|4[4-9]\d)\d{12}|3(?:0[0-5]|[689]\d)\d{11,13}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15})$/;

function isCardNumber(digits: string): boolean {
  return CARD_SHAPE.test(digits) && !/^(\d)\1+$/.test(digits) && luhn(digits);
}

/** ISO/IEC 7812-1, annex B. */
function luhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

const CONTEXT_CHARACTERS = 48;
const SSN_CONTEXT = /social security|\bssn\b|\btax(?:payer)? id/i;
const PHONE_CONTEXT =
  /phone|\btel\b|\bcall\b|mobile|whatsapp|\bfax\b|telefon|téléphone|teléfono|handy|電話|电话|전화|телефон/i;

/** US social security numbers: written 3-2-4, or with a word that says so; areas 000, 666 and 9xx are not given out. */
function isSsn(text: string, digits: string, index: number): boolean {
  if (digits.length !== 9 || /^(?:000|666|9)|^...00|0000$/.test(digits)) return false;
  const grouped = /^\d{3}[ -]\d{2}[ -]\d{4}/.test(text.slice(index, index + 11));
  return grouped || SSN_CONTEXT.test(contextBefore(text, index));
}

/** Phone numbers: international with `+`, or with a word that says so. */
function isPhone(text: string, digits: string, index: number): boolean {
  if (digits.length < 8 || digits.length > 15) return false;
  return text[index - 1] === "+" || PHONE_CONTEXT.test(contextBefore(text, index));
}

function contextBefore(text: string, index: number): string {
  return text.slice(Math.max(0, index - CONTEXT_CHARACTERS), index);
}

/** ISO 13616: country, check digits, 11 to 30 more; valid when the number modulo 97 is 1. */
function hasIban(text: string): boolean {
  for (const match of text.matchAll(
    /(?<![A-Z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])/g,
  )) {
    const iban = match[0].replaceAll(" ", "");
    if (iban.length < 15 || iban.length > 34) continue;
    let remainder = 0;
    for (const character of iban.slice(4) + iban.slice(0, 4)) {
      const value = Number.parseInt(character, 36);
      remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97;
    }
    if (remainder === 1) return true;
  }
  return false;
}
