export type Labels = Readonly<Record<string, string>>;

/**
 * Compiles a label expression as `kubectl -l` takes it: requirements joined by commas, all of which must hold.
 * `key=value`, `key==value`, `key!=value`, `key in (a, b)`, `key notin (a, b)`, `key`, `!key`.
 * An absent key satisfies `!=` and `notin`, as in Kubernetes. Throws a message for the author.
 */
export function compileLabels(expression: string): (labels: Labels) => boolean {
  const tests = splitRequirements(expression).map(compileRequirement);
  return (labels) => tests.every((test) => test(labels));
}

function splitRequirements(expression: string): string[] {
  // Commas inside parentheses separate values, not requirements.
  return expression.split(/,(?![^(]*\))/).map((part) => part.trim());
}

const KEY = "[A-Za-z0-9][-A-Za-z0-9_./]*";
/** Label values, as Kubernetes has them; a label may be empty. */
const VALUE = "[-A-Za-z0-9_.]*";
const REQUIREMENT = new RegExp(
  `^(!?)\\s*(${KEY})\\s*(?:(==?|!=)\\s*(${VALUE})|\\s(in|notin)\\s*\\((\\s*${VALUE}\\s*(?:,\\s*${VALUE}\\s*)*)\\))?$`,
);

function compileRequirement(text: string): (labels: Labels) => boolean {
  const parsed = REQUIREMENT.exec(text);
  if (parsed === null) {
    throw new Error(
      `\`${text}\` is not a label expression; write for example \`tier=gold\`, \`tier in (gold, silver)\` or \`!legacy\``,
    );
  }
  const [, not, key = "", operator, value = "", set, values = ""] = parsed;
  if (not === "!" && (operator !== undefined || set !== undefined))
    throw new Error(`\`${text}\`: \`!\` stands before a key alone`);
  if (operator === "!=") return (labels) => labels[key] !== value;
  if (operator !== undefined) return (labels) => labels[key] === value;
  if (set !== undefined) {
    const wanted = values.split(",").map((item) => item.trim());
    const isIn = (labels: Labels) => labels[key] !== undefined && wanted.includes(labels[key]);
    return set === "in" ? isIn : (labels) => !isIn(labels);
  }
  return not === "!" ? (labels) => labels[key] === undefined : (labels) => labels[key] !== undefined;
}
