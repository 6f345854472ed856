/** Compiles a name or a glob (`*` for any run of characters) to a test. */
export function compileGlob(pattern: string): (name: string) => boolean {
  if (!pattern.includes("*")) return (name) => name === pattern;
  const [head = "", ...rest] = pattern.split("*");
  const tail = rest.pop() ?? "";
  // Leftmost matches of the middle parts: linear in the text, whatever the pattern.
  return (name) => {
    if (name.length < head.length + tail.length || !name.startsWith(head) || !name.endsWith(tail)) return false;
    const end = name.length - tail.length;
    let at = head.length;
    for (const part of rest) {
      const found = name.indexOf(part, at);
      if (found < 0 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}
