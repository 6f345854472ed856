/** What an Envoy can do that matters here; older ones are served with less. */
export interface EnvoyFeatures {
  /** `sse_to_metadata` and `json_to_metadata` extract token usage in Envoy (1.38). */
  usageFilters: boolean;
  /** `priority_group` cluster specifier: ordered fallbacks across clusters (1.40). */
  priorityGroups: boolean;
}

export function featuresOf(version: { major: number; minor: number }): EnvoyFeatures {
  const atLeast = (minor: number) => version.major > 1 || (version.major === 1 && version.minor >= minor);
  return { usageFilters: atLeast(38), priorityGroups: atLeast(40) };
}

/** Reads the output of `envoy --version`: `... version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`. */
export function parseEnvoyVersion(output: string): { major: number; minor: number; text: string } | undefined {
  const [, text, major, minor] = /\/((\d+)\.(\d+)\.[\w.-]+)\//.exec(output) ?? [];
  return text === undefined ? undefined : { major: Number(major), minor: Number(minor), text };
}
