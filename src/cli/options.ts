import { InvalidArgumentError } from "commander";

/** `host:port`, `[ipv6]:port` or `:port`. */
export function parseAddress(text: string): { address: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new InvalidArgumentError("write host:port, for example 127.0.0.1:8080");
  return { address: match[1] ?? (match[2] || "0.0.0.0"), port };
}

/** A size in bytes: `1048576`, `32M`, `64k`. */
export function parseBytes(text: string): number {
  const match = /^(\d+)([kMG]?)$/.exec(text);
  if (match === null) throw new InvalidArgumentError("write a number of bytes, or for example 32M");
  const unit = { "": 1, k: 1 << 10, M: 1 << 20, G: 1 << 30 }[match[2] ?? ""] ?? 1;
  return Number(match[1]) * unit;
}

export function parseNumber(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError("write a number");
  return value;
}

/** A share, 0 to 1. */
export function parseShare(text: string): number {
  const value = parseNumber(text);
  if (value > 1) throw new InvalidArgumentError("write a share from 0 to 1, for example 0.05");
  return value;
}

/** For options that may be given several times. */
export function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}
