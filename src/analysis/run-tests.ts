import { type Configuration, compileConfiguration } from "../handler/configuration.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { Place } from "../resources/yaml-documents.ts";
import { decideSituation, type SituationOutcome } from "./situation.ts";
import type { Expectation, LoadedTests, TestCase } from "./test-file.ts";
import { mergeWorlds, situationOf } from "./world.ts";

/** What became of one case. No mismatches: it holds. */
export interface CaseResult {
  name: string;
  place: Place;
  mismatches: { place: Place; message: string }[];
  /** The decision in a line. */
  outcome: string;
}

/** Runs the cases of a file on what is declared. */
export function runTests({ tests, locate }: LoadedTests, snapshot: Snapshot): CaseResult[] {
  const configuration = compileConfiguration(snapshot);
  return tests.cases.map((testCase, i) => {
    const result = decideCase(testCase, tests.defaults ?? {}, snapshot, configuration);
    const mismatches = compare(testCase.expect, result).map(({ field, message }) => ({
      place: locate(i, "expect", field),
      message: `expect.${field}: ${message}`,
    }));
    return { name: testCase.name, place: locate(i), mismatches, outcome: inWords(result) };
  });
}

function decideCase(
  testCase: TestCase,
  defaults: NonNullable<LoadedTests["tests"]["defaults"]>,
  snapshot: Snapshot,
  configuration: Configuration,
): SituationOutcome {
  const world = mergeWorlds(defaults, testCase);
  const usualModel = defaults.request?.model ?? world.request?.model ?? "";
  return decideSituation(configuration, situationOf(world, usualModel, snapshot, configuration));
}

interface Mismatch {
  field: string;
  message: string;
}

function compare(expected: Expectation, { decided, decision }: SituationOutcome): Mismatch[] {
  const mismatches: Mismatch[] = [];
  const check = (field: keyof Expectation, holds: boolean, actual: unknown) => {
    if (expected[field] === undefined || holds) return;
    mismatches.push({ field, message: `expected ${JSON.stringify(expected[field])}, got ${JSON.stringify(actual)}` });
  };
  const routed = decided.decision.kind === "route" ? decided.decision : undefined;
  const ranking = routed?.ranking ?? [];
  const [first] = ranking;
  const refused = decision.kind === "route" ? undefined : decision;
  const nowhere = refused === undefined ? undefined : `refused ${refused.status} ${refused.code}`;
  const names = ranking.map((candidate) => candidate.name);
  const charges = routed?.charges.map(({ limit }) => limit.name.split("/").slice(-2).join("/")) ?? [];
  const { rule, message = "" } = expected;
  check("rule", rule === decision.rule || (rule !== undefined && decision.rule.endsWith(`/${rule}`)), decision.rule);
  check("model", first?.model === expected.model, first?.model ?? nowhere);
  check("backend", first?.name === expected.backend, first?.name ?? nowhere);
  check("type", first?.type === expected.type, first?.type ?? nowhere);
  check("ranking", JSON.stringify(names) === JSON.stringify(expected.ranking), nowhere ?? names);
  const outside = ranking.filter((candidate) => candidate.type === "Provider").map((candidate) => candidate.name);
  check("staysInside", (outside.length === 0) === expected.staysInside, outside);
  check("status", refused?.status === expected.status, refused?.status ?? names);
  check("code", refused?.code === expected.code, refused?.code ?? names);
  check("message", refused?.message.includes(message) === true, refused?.message ?? names);
  check("shadow", routed?.shadow?.model === expected.shadow, routed?.shadow?.model ?? nowhere);
  check("charges", JSON.stringify(charges.sort()) === JSON.stringify([...(expected.charges ?? [])].sort()), charges);
  return mismatches;
}

/** `policy/rule: model@backend > ...`, or the refusal. */
export function inWords({ decided, decision }: SituationOutcome): string {
  if (decision.kind !== "route") return `${decision.rule}: ${decision.status} ${decision.code}`;
  const ranking = decided.decision.kind === "route" ? decided.decision.ranking : [];
  return `${decision.rule}: ${ranking.map(({ model, name }) => `${model}@${name}`).join(" > ")}`;
}
