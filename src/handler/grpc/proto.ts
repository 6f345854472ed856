import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";

/** Loads a file of `proto/`, with field names as they are written there. */
export function loadProto(file: string): protobuf.Root {
  const path = fileURLToPath(new URL(`../../../proto/${file}`, import.meta.url));
  return new protobuf.Root().loadSync(path, { keepCase: true });
}

/** A google.protobuf.Struct as protobufjs decodes it. */
export interface ProtoStruct {
  fields?: { [key: string]: ProtoValue };
}
export interface ProtoValue {
  stringValue?: string;
  numberValue?: number;
  boolValue?: boolean;
  listValue?: { values?: ProtoValue[] };
  structValue?: ProtoStruct;
}

export type PlainValue = string | number | boolean | PlainValue[] | { [key: string]: PlainValue };

/** A plain value as a google.protobuf.Value. */
export function toProtoValue(value: PlainValue): ProtoValue {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "number") return { numberValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(toProtoValue) } };
  return { structValue: toProtoStruct(value) };
}

export function toProtoStruct(value: { [key: string]: PlainValue }): ProtoStruct {
  return { fields: Object.fromEntries(Object.entries(value).map(([key, field]) => [key, toProtoValue(field)])) };
}
