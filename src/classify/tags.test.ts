import { describe, expect, test } from "vitest";
import { complexityClassifier, easiness } from "./complexity.ts";
import { piiClassifier } from "./pii.ts";
import { RequestTags } from "./tags.ts";

const pii = (text: string) =>
  [...piiClassifier.classify({ everything: [text], lastUser: text })].filter((tag) => tag !== "pii-detected").sort();

describe("personal data", () => {
  test.each([
    ["write to anna.schmidt@firma.de please", ["pii-email"]],
    ["<jürgen+news@müller-gmbh.example.org.uk>", ["pii-email"]],
    ["card 4111 1111 1111 1111 exp 10/29", ["pii-card"]],
    ["card:4111111111111111,", ["pii-card"]],
    ["amex 3782-822463-10005", ["pii-card"]],
    ["IBAN DE89 3704 0044 0532 0130 00", ["pii-iban"]],
    ["iban GB82WEST12345698765432", ["pii-iban"]],
    ["my SSN is 536-22-8726", ["pii-ssn"]],
    ["social security number 536228726", ["pii-ssn"]],
    ["call me: +44 20 7946 0958", ["pii-phone"]],
    ["Telefon 030 12345678", ["pii-phone"]],
    ["a@b.co and 5555555555554444", ["pii-card", "pii-email"]],
  ])("%s", (text, kinds) => {
    expect(pii(text)).toEqual(kinds);
  });

  test.each([
    ["what is 4111 1111 1111 1112 divided by 3?"],
    ["user@example.com and admin@localhost"],
    ["git@github.com:org/repo.git"],
    ["price @ 5 dollars, see @types/node"],
    ["order 1234567890123 of 2026-12-01 10:00:00"],
    ["0000 0000 0000 0000"],
    ["version 1.2.3.4.5.6.7.8"],
    ["hash deadbeef4111111111111111cafe"],
    ["DE00 3704 0044 0532 0130 00"],
    ["pi is 3.14159265358979323846"],
  ])("nothing in: %s", (text) => {
    expect(pii(text)).toEqual([]);
  });

  // Quadratic work on these would take minutes and end in the test's timeout.
  test("hostile text is looked at in linear time", { timeout: 30_000 }, () => {
    for (const piece of ["@", "a@", "1", "1 ", "DE89 ", "1.2-"]) expect(pii(piece.repeat(100_000))).toBeDefined();
  });
});

describe("complexity", () => {
  test.each([
    ["Hi there!"],
    ["What is the capital of France?"],
    ["Translate 'bread' to German"],
    ["你好,请翻译 bread"],
    ["Say hello in Spanish"],
  ])("low: %s", (text) => {
    expect([...complexityClassifier.classify({ everything: [], lastUser: text })]).toEqual(["complexity-low"]);
  });
  test.each([
    ["Prove that the square root of every prime is irrational and derive the asymptotic density."],
    ["Design a distributed lock service with fencing tokens; analyze the trade-offs step by step."],
    [
      "Debug this deadlock and refactor the algorithm: thread A waits for B, which waits for the condition variable of A.",
    ],
  ])("not low: %s", (text) => {
    expect(easiness(text)).toBeLessThan(0.5);
  });
  test("gives exactly one tag for any text", () => {
    for (const text of ["", " ", "?".repeat(100_000), "x".repeat(1_000_000), "\u0000"]) {
      expect(complexityClassifier.classify({ everything: [], lastUser: text }).size).toBe(1);
    }
  });
});

test("tags are computed once, when asked for; what cannot be computed is neither true nor false", () => {
  let calls = 0;
  const counting = { tags: ["a", "b"], classify: () => new Set([calls++ === 0 ? "a" : "again"]) };
  const failing = {
    tags: ["c"],
    classify: () => {
      throw new Error("no");
    },
  };
  const tags = new RequestTags(() => ({ everything: [], lastUser: "" }), undefined, [counting, failing]);
  expect(calls).toBe(0);
  expect([tags.has("a"), tags.has("b"), tags.has("a"), tags.has("c"), tags.has("unknown")]).toEqual([
    true,
    false,
    true,
    undefined,
    undefined,
  ]);
  expect(calls).toBe(1);
  expect(tags.found()).toEqual(["a"]);
});
