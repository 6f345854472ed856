import { dirname, join } from "node:path";
import type { Static } from "typebox";
import { BACKEND_TYPES } from "../api/request-match.ts";
import { bool, closed, integer, list, oneOf, optional, text } from "../api/schema.ts";
import { validate } from "../api/validate.ts";
import { problemText } from "../resources/resource-status.ts";
import { type Place, readDocuments } from "../resources/yaml-documents.ts";
import { worldFields } from "./world-schema.ts";

const expectSchema = closed(
  {
    rule: optional(text("The rule that decides: its name, or `POLICY/RULE`; `default` if no rule does.")),
    model: optional(text("The model that is chosen.")),
    backend: optional(text("The worker or provider that is chosen.")),
    type: optional(oneOf(BACKEND_TYPES, "What it is.")),
    ranking: optional(list(text(""), { description: "All backends that may serve it, best first, and no others." })),
    staysInside: optional(bool("That no backend of the ranking is a provider.")),
    status: optional(integer("That the request is refused, with this HTTP status.", { minimum: 400, maximum: 599 })),
    code: optional(text("With this code.")),
    message: optional(text("With this text somewhere in its message.", { maxLength: 1024 })),
    shadow: optional(text("The model that gets a copy.")),
    charges: optional(
      list(text(""), { description: "The limits that it is charged to, as `POLICY/RULE`, and no others." }),
    ),
  },
  { minProperties: 1, description: "What must come out; all that is given." },
);

const caseSchema = closed({
  name: text("What the case shows."),
  ...worldFields,
  expect: expectSchema,
});
export type TestCase = Static<typeof caseSchema>;
export type Expectation = Static<typeof expectSchema>;

export const testFileSchema = closed(
  {
    policies: optional(
      list(text("", { maxLength: 1024 }), {
        description: "Files or folders of what is declared. Absent: the file of the same name without `.test`.",
        minItems: 1,
      }),
    ),
    defaults: optional(closed(worldFields, { description: "What every case begins with." })),
    cases: list(caseSchema, { description: "The cases.", minItems: 1, maxItems: 10_000, key: "name" }),
  },
  { description: "Cases that policies are tested by (`kinfctl test`)." },
);
export type TestFile = Static<typeof testFileSchema>;

export interface LoadedTests {
  file: string;
  /** Paths of what is declared, as seen from the working directory. */
  policies: string[];
  tests: TestFile;
  /** Where a part of a case is. */
  locate(caseIndex: number, ...path: string[]): Place;
}

/** Reads a file of test cases. */
export function loadTests(
  file: string,
): { ok: true; loaded: LoadedTests } | { ok: false; problems: (Place & { message: string })[] } {
  const { documents, mistakes } = readDocuments(file);
  const [document, second] = documents;
  if (mistakes.length > 0) return { ok: false, problems: mistakes };
  if (document === undefined) return { ok: false, problems: [{ file, line: 1, column: 1, message: "has no cases" }] };
  if (second !== undefined)
    return { ok: false, problems: [{ ...second.locate([]), message: "a file of test cases is one document" }] };
  const problems = validate(testFileSchema, document.value);
  if (problems.length > 0) {
    return {
      ok: false,
      problems: problems.map((problem) => ({
        ...document.locate(problem.path, problem.atKey),
        message: problemText(problem),
      })),
    };
  }
  const tests = document.value as TestFile;
  const beside = tests.policies?.map((path) => join(dirname(file), path)) ?? [file.replace(/[.]test([.]ya?ml)$/, "$1")];
  return {
    ok: true,
    loaded: {
      file,
      policies: beside,
      tests,
      locate: (caseIndex, ...path) => document.locate(["cases", caseIndex, ...path]),
    },
  };
}
