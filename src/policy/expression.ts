import { CelScalar, celEnv, celFunc, isCelError, parse, plan } from "@bufbuild/cel";
import { suggestion } from "../api/suggestion.ts";
import type { RequestFacts, Verdict } from "./facts.ts";

/** No expression may do more work than this: steps in its text, and loops inside loops. */
const MAX_NODES = 300;
const MAX_LOOP_DEPTH = 1;
/** What `maxTokens` is for a request without a cap. */
const NO_CAP = BigInt(Number.MAX_SAFE_INTEGER);

const VARIABLES = [
  "model",
  "tenant",
  "tenantLabels",
  "api",
  "path",
  "headers",
  "stream",
  "promptTokens",
  "maxTokens",
  "tools",
  "images",
  "pool",
] as const;

const POOL_FIELDS = ["queuedPrompts", "runningPrompts", "kvCacheUsage", "healthyWorkers"];

/** What is under evaluation: functions of an expression are told nothing else. */
let current: { facts: RequestFacts; idOf: (tag: string) => string } | undefined;

const environment = celEnv({
  funcs: [
    celFunc("hasTag", [CelScalar.STRING], CelScalar.BOOL, (tag) => {
      const verdict = current?.facts.hasTag(current.idOf(tag));
      // An error is CEL's "unknown": `||` and `&&` look past it where the other side decides.
      if (verdict === undefined) throw new Error(`tag ${tag} cannot be told`);
      return verdict;
    }),
  ],
});

export interface CompiledExpression {
  holds(facts: RequestFacts): Verdict;
}

/** `found no matching overload for '_>_' applied to '(int, string)'`, as somebody would say it who is no interpreter. */
function overloadInWords(message: string): string {
  const [, operator, types] = /overload for '_?([^']+?)_?' applied to '\(([^)]*)\)'/.exec(message) ?? [];
  return operator === undefined ? message : `\`${operator}\` does not take ${types}`;
}

/**
 * Compiles a CEL expression. What cannot be computed for a request is unknown.
 * Throws a message for the author: syntax, unknown names, a result that is not true or false, too much work.
 * @param tagId the id by which to ask for a tag that the expression names
 */
export function compileExpression(source: string, tagId: (tag: string) => string): CompiledExpression {
  const parsed = parseSource(source);
  const shape: Shape = { nodes: 0, loopDepth: 0, tags: [] };
  if (parsed.expr !== undefined) inspect(parsed.expr, shape, 0, new Set(VARIABLES));
  if (shape.nodes > MAX_NODES) throw new Error(`too long: ${shape.nodes} steps, at most ${MAX_NODES} are allowed`);
  if (shape.loopDepth > MAX_LOOP_DEPTH)
    throw new Error("a loop (all, exists, map, filter) inside a loop is not allowed");
  const ids = new Map(shape.tags.map((tag) => [tag, tagId(tag)]));
  const idOf = (tag: string) => ids.get(tag) ?? tag;
  const program = plan(environment, parsed);
  const evaluate = (facts: RequestFacts) => {
    current = { facts, idOf };
    try {
      return program(bindingsOf(facts) as Parameters<typeof program>[0]);
    } finally {
      current = undefined;
    }
  };
  const sample = evaluate(SAMPLE);
  if (isCelError(sample)) {
    // A header or label that the sample request does not have is no mistake.
    const message = sample.message.replace(/^unbound function: (.*)$/, "unknown function `$1`");
    if (!message.startsWith("field not found")) throw new Error(overloadInWords(message));
  } else if (typeof sample !== "boolean") throw new Error("an expression must give true or false");
  return {
    holds(facts) {
      const verdict = evaluate(facts);
      return typeof verdict === "boolean" ? verdict : undefined;
    },
  };
}

function parseSource(source: string): ReturnType<typeof parse> {
  try {
    return parse(source);
  } catch (error) {
    throw new Error((error as Error).message.replace(/^<input>:\d+:(\d+): /, "not CEL, at character $1: "));
  }
}

interface Shape {
  nodes: number;
  loopDepth: number;
  tags: string[];
}

interface ExprLike {
  exprKind: { case?: string | undefined; value?: unknown };
}

/** Walks a parsed expression: counts its steps, finds the names that it uses. */
function inspect(expression: ExprLike, shape: Shape, depth: number, known: ReadonlySet<string>): void {
  shape.nodes++;
  const { case: kind, value } = expression.exprKind;
  if (kind === "identExpr") {
    const { name } = value as { name: string };
    if (!known.has(name)) throw new Error(`unknown name \`${name}\`${suggestion(name, VARIABLES)}`);
    return;
  }
  if (kind === "selectExpr") {
    const { operand, field } = value as { operand?: ExprLike; field: string };
    const isPool = (operand?.exprKind.value as { name?: string } | undefined)?.name === "pool";
    if (isPool && !POOL_FIELDS.includes(field))
      throw new Error(`unknown field \`pool.${field}\`${suggestion(field, POOL_FIELDS)}`);
  }
  if (kind === "comprehensionExpr") {
    const loop = value as Record<string, ExprLike | undefined> & { iterVar: string; iterVar2: string; accuVar: string };
    shape.loopDepth = Math.max(shape.loopDepth, depth + 1);
    for (const part of ["iterRange", "accuInit"]) if (loop[part]) inspect(loop[part], shape, depth, known);
    const inside = new Set([...known, loop.iterVar, loop.iterVar2, loop.accuVar]);
    for (const part of ["loopCondition", "loopStep", "result"])
      if (loop[part]) inspect(loop[part], shape, depth + 1, inside);
    return;
  }
  if (kind === "callExpr") {
    const call = value as { function: string; args: ExprLike[] };
    if (call.function === "hasTag") {
      const argument = call.args[0]?.exprKind;
      const constant =
        argument?.case === "constExpr" ? (argument.value as { constantKind: { value?: unknown } }) : undefined;
      const text = constant?.constantKind.value;
      if (typeof text !== "string") throw new Error("hasTag takes one tag in quotes");
      shape.tags.push(text);
    }
  }
  for (const child of childrenOf(value)) inspect(child, shape, depth, known);
}

function childrenOf(value: unknown): ExprLike[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value)
    .flatMap((field: unknown): unknown[] => (Array.isArray(field) ? field : [field]))
    .flatMap((field) => (isExpression(field) ? [field] : isEntry(field) ? childrenOf(field) : []));
}

function isExpression(value: unknown): value is ExprLike {
  return typeof value === "object" && value !== null && "exprKind" in value;
}

function isEntry(value: unknown): boolean {
  return typeof value === "object" && value !== null && "keyKind" in value;
}

function bindingsOf(facts: RequestFacts): Record<string, unknown> {
  const bindings: Record<string, unknown> = {
    model: facts.model,
    tenant: facts.tenant,
    tenantLabels: facts.tenantLabels,
    api: facts.api,
    path: facts.path,
    headers: facts.headers,
    stream: facts.stream,
    promptTokens: BigInt(Math.round(facts.promptTokens)),
    maxTokens: facts.maxTokens === undefined ? NO_CAP : BigInt(Math.round(facts.maxTokens)),
    tools: facts.offersTools,
    images: facts.imageCount > 0,
    get pool() {
      const { queuedPrompts, runningPrompts, kvCacheUsage, healthyWorkers } = facts.pool(undefined);
      return Object.fromEntries(
        Object.entries({ queuedPrompts, runningPrompts, kvCacheUsage, healthyWorkers })
          .filter(([, value]) => value !== undefined)
          .map(([name, value]) => [name, name === "kvCacheUsage" ? value : BigInt(Math.round(value ?? 0))]),
      );
    },
  };
  return bindings;
}

/** A request by which an expression is tried when it is compiled. */
const SAMPLE: RequestFacts = {
  api: "chat",
  path: "/v1/chat/completions",
  model: "model",
  askedModel: "model",
  tenant: "default",
  tenantLabels: {},
  stream: true,
  promptTokens: 100,
  maxTokens: 100,
  offersTools: false,
  imageCount: 0,
  headers: new Map(),
  conversationPercent: 0,
  epochMs: 0,
  hasTag: () => true,
  pool: () => ({ queuedPrompts: 0, runningPrompts: 0, kvCacheUsage: 0, healthyWorkers: 1 }),
};
