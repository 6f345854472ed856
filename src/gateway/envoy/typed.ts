/** xDS in Envoy's JSON form. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** A typed extension configuration: `envoy.` types are named without their package's root. */
export function typed(type: string, fields: JsonObject): JsonObject {
  return { "@type": `type.googleapis.com/envoy.${type}`, ...fields };
}

export function extension(name: string, type: string, fields: JsonObject): JsonObject {
  return { name, typed_config: typed(type, fields) };
}
