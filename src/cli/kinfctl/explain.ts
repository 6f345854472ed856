import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { readDecisionLog } from "../../analysis/read-decision-log.ts";
import { requestSituation } from "../../analysis/request-situation.ts";
import { decideSituation, type Situation } from "../../analysis/situation.ts";
import type { DecisionExplanation } from "../../telemetry/explanation.ts";
import { collect } from "../options.ts";
import { AdminClient, DEFAULT_SERVER, type ExplainedWithOutcome } from "./admin-client.ts";
import { loadOrFail } from "./declared.ts";
import { addOutput, type OutputFlags, paint, print, table, UsageError } from "./output.ts";

interface ExplainFlags extends OutputFlags {
  file?: string;
  requestId?: string;
  policies?: string[];
  server?: string;
  log?: string;
  path: string;
  header?: string[];
  tenant?: string;
  route?: string;
  worker?: string[];
}

/** What is printed: a decision, and how it came about. */
type Explained = Pick<DecisionExplanation, "request" | "decision" | "rules" | "considered" | "notes"> &
  Partial<Pick<ExplainedWithOutcome, "id" | "at" | "outcome">>;

export function addExplain(program: Command): void {
  addOutput(program.command("explain"))
    .description("say why a request is decided as it is: each rule, and each candidate with the reason it lost")
    .option("-f, --file <request.json>", "a request's body, as a client sends it; - is standard input")
    .option("--request-id <id>", "a request that was decided: its x-request-id, or the decision's id")
    .option("-p, --policies <path>", "with -f: decide by these files, without a handler (repeatable)", collect)
    .option("--server <url>", `ask a running handler (without --policies and --log: ${DEFAULT_SERVER})`)
    .option("--log <file>", "with --request-id: look into this decision log")
    .option("--path <path>", "with -f: the path that it is sent to", "/v1/chat/completions")
    .option("--header <name:value>", "with -f: a header of the request (repeatable)", collect)
    .option("--tenant <name>", "with --policies: whose request it is")
    .option("--route <namespace/name>", "with -f: the HTTPRoute that it takes")
    .option("--worker <name=model,...>", "with --policies: an idle worker and what it serves (repeatable)", collect)
    .action(async (flags: ExplainFlags) => {
      const explained = await explainedBy(flags);
      print(explained, flags, () => inWords(explained));
    });
}

async function explainedBy(flags: ExplainFlags): Promise<Explained> {
  if ((flags.file === undefined) === (flags.requestId === undefined))
    throw new UsageError("explain takes one of -f REQUEST.json and --request-id ID");
  if (flags.requestId !== undefined) return decided(flags.requestId, flags);
  const body = readFileSync(flags.file === "-" ? 0 : (flags.file ?? ""), "utf8");
  if (flags.policies === undefined)
    return new AdminClient(flags.server ?? DEFAULT_SERVER).explain(queryOf(flags), body);
  return offline(body, flags.policies, flags);
}

async function decided(id: string, { log, server = DEFAULT_SERVER }: ExplainFlags): Promise<Explained> {
  if (log === undefined) return new AdminClient(server).decision(id);
  const { decisions } = await readDecisionLog(log);
  const found = decisions.findLast(({ explanation }) => explanation.id === id || explanation.requestId === id);
  if (found === undefined)
    throw new UsageError(`${log}: has no decision ${id}; only explained ones are in it (--explain)`);
  return { ...found.explanation, ...(found.outcome === undefined ? {} : { outcome: found.outcome }) };
}

function queryOf({ path, route, header = [] }: ExplainFlags): URLSearchParams {
  const query = new URLSearchParams({ path, ...(route === undefined ? {} : { route }) });
  for (const line of header) query.append("header", line);
  return query;
}

function offline(body: string, policies: readonly string[], flags: ExplainFlags): Explained {
  const { snapshot } = loadOrFail(policies);
  const headers = (flags.header ?? []).map((line): [string, string] => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new UsageError(`--header ${line}: write NAME:VALUE`);
    return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
  });
  const workers = (flags.worker ?? []).map((text): [string, string[]] => {
    const [name = "", models = ""] = text.split("=");
    if (name === "" || models === "") throw new UsageError(`--worker ${text}: write NAME=MODEL,MODEL`);
    return [name, models.split(",")];
  });
  const { path, route = "", tenant = "default" } = flags;
  const asked = { path, route, tenant, headers: Object.fromEntries(headers), epochMs: Date.now(), workers };
  const built = requestSituation(body, asked, snapshot);
  if (!built.ok) throw new UsageError(`the client would be told: ${built.error.status} ${built.error.message}`);
  return explainedSituation(built.value);
}

function explainedSituation({
  situation,
  configuration,
}: {
  situation: Situation;
  configuration: Parameters<typeof decideSituation>[0];
}): Explained {
  const {
    decision,
    decided: { trace, decision: full },
  } = decideSituation(configuration, situation);
  const { request } = situation;
  return { request, decision, rules: trace?.rules ?? [], considered: trace?.candidates ?? [], notes: full.notes };
}

function inWords({ id, at, request, decision, rules, considered, notes, outcome }: Explained): string[] {
  const { askedModel, api, tenant, promptTokens, tags } = request;
  const held = Object.entries(tags).map(([tag, holds]) => (holds === null ? `${tag}?` : holds ? tag : ""));
  const lines = [
    ...(id === undefined || at === undefined ? [] : [`decision  ${id} at ${at}`]),
    `request   ${askedModel} by ${api}, tenant ${tenant}, ${promptTokens} prompt tokens`,
    `tags      ${held.filter(Boolean).join(", ") || "none"}`,
    `rule      ${paint("bold", decision.rule)}`,
    `result    ${resultInWords(decision)}`,
  ];
  if (outcome !== undefined)
    lines.push(
      `outcome   ${outcome.outcome} (${outcome.status}) from ${outcome.servedBy} in ${Math.round(outcome.e2eMs)} ms`,
    );
  return [
    ...lines,
    ...notes.map((note) => `note      ${note}`),
    "",
    ...table(
      ["RULE", "HOLDS", "OUTCOME", "WHAT DID NOT HOLD"],
      rules.map(({ rule, holds, outcome, failing }) => [
        rule,
        holds === null ? "unknown" : holds ? "yes" : "no",
        outcome,
        failing.map((fields) => fields.join(", ")).join(" | "),
      ]),
    ),
    "",
    ...table(
      ["PLACE", "BACKEND", "TYPE", "MODEL", "WHY"],
      [...considered]
        .sort((a, b) => (a.place ?? Number.POSITIVE_INFINITY) - (b.place ?? Number.POSITIVE_INFINITY))
        .map(({ place, backend, type, model, lost, rankedBy, value }) => [
          place === undefined ? "-" : String(place),
          backend,
          type,
          model,
          lost ??
            [rankedBy, value === undefined ? undefined : String(Math.round(value * 100) / 100)]
              .filter(Boolean)
              .join(": "),
        ]),
    ),
  ];
}

function resultInWords(decision: DecisionExplanation["decision"]): string {
  if (decision.kind !== "route") return paint("red", `${decision.status} ${decision.code}: ${decision.message}`);
  const { model, backend, type, fallbacks } = decision;
  const then = fallbacks.length === 0 ? "" : `, then ${fallbacks.join(", ")}`;
  return `${paint("green", `${model} on ${backend}`)} (${type})${then}`;
}
