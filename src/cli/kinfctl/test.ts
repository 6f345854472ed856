import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { type CaseResult, runTests } from "../../analysis/run-tests.ts";
import { loadTests } from "../../analysis/test-file.ts";
import { isTestFile, type Place } from "../../resources/yaml-documents.ts";
import { load } from "./declared.ts";
import { addOutput, count, EXIT, type OutputFlags, paint, print, UsageError } from "./output.ts";

interface TestFlags extends OutputFlags {
  verbose?: boolean;
}

interface FileResult {
  file: string;
  /** Mistakes in the file of cases or in what it tests: nothing could be run. */
  problems: (Place & { message: string })[];
  cases: CaseResult[];
}

export function addTest(program: Command): void {
  addOutput(program.command("test"))
    .description("run test cases on the policies that they lie beside: NAME.test.yaml tests NAME.yaml")
    .argument("<paths...>", "files of test cases, or folders that have some")
    .option("-v, --verbose", "also print the cases that hold, with what was decided")
    .action((paths: string[], flags: TestFlags) => {
      const results = paths.flatMap(testFilesIn).map(runFile);
      const cases = results.flatMap((result) => result.cases);
      const failed = cases.filter((one) => one.mismatches.length > 0).length;
      const broken = results.filter((result) => result.problems.length > 0).length;
      print(results, flags, () => [
        ...results.flatMap((result) => inWords(result, flags.verbose === true)),
        `${cases.length - failed} passed, ${failed} failed${broken === 0 ? "" : `, ${count(broken, "file")} could not be run`}`,
      ]);
      if (failed > 0 || broken > 0) process.exitCode = EXIT.problems;
    });
}

function testFilesIn(path: string): string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new UsageError(`${path}: no such file or folder`);
  if (!stats.isDirectory()) return [path];
  const files = readdirSync(path, { recursive: true, encoding: "utf8" }).filter(isTestFile);
  if (files.length === 0) throw new UsageError(`${path}: has no test cases (NAME.test.yaml)`);
  return files.sort().map((file) => join(path, file));
}

function runFile(file: string): FileResult {
  const read = loadTests(file);
  if (!read.ok) return { file, problems: read.problems, cases: [] };
  const declared = load(read.loaded.policies);
  if (!declared.ok) return { file, problems: declared.problems, cases: [] };
  return { file, problems: [], cases: runTests(read.loaded, declared.snapshot) };
}

function inWords({ file, problems, cases }: FileResult, verbose: boolean): string[] {
  const at = ({ file, line, column }: Place) => `${file}:${line}:${column}`;
  const failures = cases.flatMap(({ name, place, mismatches, outcome }) => {
    if (mismatches.length === 0) return verbose ? [`${paint("green", "ok")} ${name} (${outcome})`] : [];
    return [
      `${at(place)}: ${paint("red", "failed")}: ${name}`,
      ...mismatches.map((mismatch) => `  ${at(mismatch.place)}: ${mismatch.message}`),
      `  decided ${outcome}`,
    ];
  });
  const held = cases.filter((one) => one.mismatches.length === 0).length;
  const lines = problems.map((problem) => `${at(problem)}: ${paint("red", "error")}: ${problem.message}`);
  return [
    ...lines,
    ...failures,
    ...(problems.length === 0 ? [`${file}: ${held} of ${count(cases.length, "case")} hold`] : []),
  ];
}
