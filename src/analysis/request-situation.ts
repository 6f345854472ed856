import { RequestTags } from "../classify/tags.ts";
import { classifiedText } from "../handler/classified-text.ts";
import { type Configuration, compileConfiguration } from "../handler/configuration.ts";
import { conversationPercent } from "../handler/request-facts.ts";
import { parseJsonBody } from "../protocols/json-body.ts";
import type { Result } from "../protocols/protocol.ts";
import { protocolOf } from "../protocols/protocols.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { Situation } from "./situation.ts";
import { allTags, situationOf } from "./world.ts";
import type { WrittenWorker } from "./world-schema.ts";

const CHARACTERS_PER_TOKEN = 4;

/** What is to be supposed of a request beside its body. */
export interface Supposed {
  path: string;
  route: string;
  tenant: string;
  headers: Record<string, string>;
  epochMs: number;
  /** Idle workers with the models that they serve. */
  workers: readonly (readonly [name: string, models: string[]])[];
}

/** The situation of a request's body among idle workers and the providers that are declared, all of them well. */
export function requestSituation(
  text: string,
  supposed: Supposed,
  snapshot: Snapshot,
): Result<{ situation: Situation; configuration: Configuration }> {
  const protocol = protocolOf(supposed.path);
  if (protocol === undefined)
    return { ok: false, error: { status: 404, code: "unknown_path", message: `There is no API at ${supposed.path}` } };
  const body = parseJsonBody(Buffer.from(text));
  if (!body.ok) return body;
  const read = protocol.read(body.value.value);
  if (!read.ok) return read;
  const request = read.value;
  const configuration = compileConfiguration(snapshot);
  const tags = new RequestTags(() => classifiedText(request, body.value.value), configuration.ownTags);
  const characters = request.segments.reduce((sum, segment) => sum + segment.text.length, 0);
  const world = {
    request: {
      model: request.model,
      api: request.api,
      path: supposed.path,
      route: supposed.route,
      tenant: supposed.tenant,
      promptTokens: request.promptTokenIds?.length ?? Math.max(1, Math.ceil(characters / CHARACTERS_PER_TOKEN)),
      ...(request.maxTokens === undefined ? {} : { maxTokens: request.maxTokens }),
      stream: request.stream,
      tools: request.offersTools,
      images: request.imageCount > 0,
      headers: supposed.headers,
      percent: conversationPercent(request),
      time: new Date(supposed.epochMs).toISOString(),
    },
    workers: Object.fromEntries(supposed.workers.map(([name, models]): [string, WrittenWorker] => [name, { models }])),
    providers: Object.fromEntries(snapshot.providers.map(({ metadata }) => [metadata.name, {}])),
  };
  const situation = situationOf(world, request.model, snapshot, configuration);
  const told = Object.fromEntries(allTags(configuration.ownTags).map((id) => [id, tags.has(id) ?? null]));
  return {
    ok: true,
    value: { situation: { ...situation, request: { ...situation.request, tags: told } }, configuration },
  };
}
