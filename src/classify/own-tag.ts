import { RE2JS } from "re2js";
import type { TagDefinition } from "../api/tag-definition.ts";
import type { ClassifiedText } from "./classifier.ts";
import { compileKeywords } from "./keywords.ts";
import { compileSimilar } from "./similar.ts";

/** A tag that a policy defines. */
export interface OwnTag {
  /** Whether one of the ways that need nobody else gives the tag. */
  holds(text: ClassifiedText): boolean;
  /** Asked when `holds` says no. */
  readonly remote: RemoteQuestion | undefined;
}

/** What to ask an HTTP classifier. */
export interface RemoteQuestion {
  readonly url: string;
  readonly timeoutMs: number;
  readonly atLeast: number;
  readonly cacheSeconds: number;
  textOf(text: ClassifiedText): string;
}

/** Compiles a definition. `timeoutMs` is its timeout, read. Throws a message for the author. */
export function compileOwnTag(definition: TagDefinition, timeoutMs: number): OwnTag {
  const { input = "lastUser", keywords, pattern, similar, http } = definition;
  const textsOf = (text: ClassifiedText) => (input === "lastUser" ? [text.lastUser] : text.everything);
  const tests: ((text: string) => boolean)[] = [];
  if (keywords !== undefined) tests.push(compileKeywords(keywords));
  if (pattern !== undefined) {
    const compiled = RE2JS.compile(pattern);
    tests.push((text) => compiled.matcher(text).find());
  }
  if (similar !== undefined) tests.push(compileSimilar(similar.examples, similar.counterExamples));
  return {
    holds: (text) => textsOf(text).some((part) => tests.some((test) => test(part))),
    remote: http && {
      url: http.url,
      timeoutMs,
      atLeast: http.atLeast ?? 0.5,
      cacheSeconds: http.cacheSeconds ?? 60,
      textOf: (text) => textsOf(text).join("\n"),
    },
  };
}
