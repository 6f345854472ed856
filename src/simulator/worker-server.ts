import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Counts, SimulatedApi } from "./apis/api.ts";
import { chatApi } from "./apis/chat.ts";
import { completionsApi } from "./apis/completions.ts";
import { messagesApi, readAnthropic } from "./apis/messages.ts";
import { responsesApi } from "./apis/responses.ts";
import { metricsPage } from "./metrics-page.ts";
import { type Generation, Runner, type RunnerSettings } from "./runner.ts";
import { tokenize } from "./tokenizer.ts";

export interface SimulatorSettings extends RunnerSettings {
  models: readonly string[];
  maxModelLen: number;
  /** Above it new requests get 503, as with vLLM's `--max-num-queued-reqs`. */
  maxQueued: number;
}

export const DEFAULT_SIMULATOR: SimulatorSettings = {
  models: ["simulated"],
  maxModelLen: 32_768,
  maxQueued: Number.POSITIVE_INFINITY,
  blocks: 4096,
  blockTokens: 16,
  maxRunning: 64,
  stepTokenBudget: 2048,
  prefillTokensPerSecond: 10_000,
  stepMs: 10,
  seed: 1,
};

const APIS: readonly SimulatedApi[] = [chatApi, completionsApi, responsesApi, messagesApi];
const DEFAULT_MAX_TOKENS = 128;
type Body = Record<string, unknown>;

/** A vLLM server without a GPU: its APIs, its errors, its metrics, its scheduler and its KV cache, in real time. */
export class SimulatedWorker {
  readonly #settings: SimulatorSettings;
  readonly #runner: Runner;
  readonly #server: Server;
  readonly #startedAt = Date.now() / 1000;
  #nextId = 0;
  /** Requests that reached a generating API, for tests and demos. */
  served = 0;

  constructor(settings: Partial<SimulatorSettings> = {}) {
    this.#settings = { ...DEFAULT_SIMULATOR, ...settings };
    this.#runner = new Runner(this.#settings);
    // uvicorn, which serves vLLM, closes idle connections after 5 s.
    this.#server = createServer(
      { keepAliveTimeout: 5000 },
      (request, response) => void this.#answer(request, response),
    );
  }

  listen(port: number, host = "127.0.0.1"): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  /** Dies as a killed process does: connections are cut, nobody listens. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    if (request.method === "GET") {
      this.#get(path, response);
      return;
    }
    let bytes: Buffer;
    try {
      bytes = Buffer.concat(await request.toArray());
    } catch {
      return; // The client left before its request was whole.
    }
    let body: Body;
    try {
      body = JSON.parse(bytes.toString()) as Body;
    } catch (error) {
      fail(response, 400, "BadRequestError", `Invalid JSON: ${(error as Error).message}`);
      return;
    }
    if (!this.#settings.models.includes(String(body.model))) {
      fail(response, 404, "NotFoundError", `The model \`${String(body.model)}\` does not exist.`);
      return;
    }
    this.#post(path, body, response);
  }

  #get(path: string, response: ServerResponse): void {
    if (path === "/health") response.writeHead(200).end();
    else if (path === "/metrics") {
      const page = metricsPage(this.#runner.engine, this.#settings.models[0] ?? "", this.#startedAt);
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(page);
    } else if (path === "/v1/models") {
      const data = this.#settings.models.map((id) => ({
        id,
        object: "model",
        created: 0,
        owned_by: "vllm",
        max_model_len: this.#settings.maxModelLen,
      }));
      json(response, 200, { object: "list", data });
    } else fail(response, 404, "NotFoundError", "Not Found");
  }

  #post(path: string, body: Body, response: ServerResponse): void {
    const api = APIS.find((one) => one.path === path);
    if (api !== undefined) this.#generate(api, body, response);
    else if (path === "/v1/messages/count_tokens") {
      const read = readAnthropic(body);
      if (typeof read === "string") fail(response, 400, "BadRequestError", read);
      else json(response, 200, { input_tokens: read.prompt.length });
    } else if (path === "/tokenize") {
      const read = typeof body.prompt === "string" ? { prompt: tokenize(body.prompt) } : chatApi.read(body);
      if (typeof read === "string") fail(response, 400, "BadRequestError", read);
      else
        json(response, 200, {
          count: read.prompt.length,
          max_model_len: this.#settings.maxModelLen,
          tokens: read.prompt,
        });
    } else if (path === "/v1/embeddings") this.#embed(body, response);
    else fail(response, 404, "NotFoundError", "Not Found");
  }

  #embed(body: Body, response: ServerResponse): void {
    const inputs = (Array.isArray(body.input) ? body.input : [body.input]).map((input) => tokenize(String(input)));
    const data = inputs.map((tokens, index) => ({
      object: "embedding",
      index,
      embedding: tokens.slice(0, 4).map((t) => (t % 1000) / 1000),
    }));
    const total = inputs.reduce((sum, tokens) => sum + tokens.length, 0);
    json(response, 200, {
      object: "list",
      data,
      model: body.model,
      usage: { prompt_tokens: total, total_tokens: total },
    });
  }

  #generate(api: SimulatedApi, body: Body, response: ServerResponse): void {
    const read = api.read(body);
    if (typeof read === "string") {
      fail(response, 400, "BadRequestError", read);
      return;
    }
    const { engine } = this.#runner;
    const room = Math.min(this.#settings.maxModelLen, engine.capacityTokens) - read.prompt.length;
    if (room < 1) {
      const message = `This model's maximum context length is ${this.#settings.maxModelLen} tokens. However, your request has ${read.prompt.length} input tokens.`;
      fail(response, 400, "BadRequestError", message);
      return;
    }
    if (engine.waiting >= this.#settings.maxQueued) {
      fail(response, 503, "ServiceUnavailableError", "The server is overloaded: its queue is full.");
      return;
    }
    this.served++;
    const generation = this.#runner.start(read.prompt, Math.min(read.maxTokens ?? DEFAULT_MAX_TOKENS, room), read.salt);
    response.on("close", () => this.#runner.abort(generation));
    const id = `sim-${this.#nextId++}`;
    if (read.stream) stream(api, id, body, generation, response);
    else collect(api, id, body, generation, response);
  }
}

function stream(api: SimulatedApi, id: string, body: Body, generation: Generation, response: ServerResponse): void {
  const answer = api.stream(id, body);
  // vLLM sends its headers before prefill ends.
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  let started = false;
  generation.onToken = (text) => {
    const start = started ? "" : answer.start(countsOf(generation));
    started = true;
    response.write(start + answer.token(text, generation.sequence.generated >= generation.sequence.maxTokens));
  };
  generation.onEnd = () => response.end(answer.end(countsOf(generation)));
}

function collect(api: SimulatedApi, id: string, body: Body, generation: Generation, response: ServerResponse): void {
  let text = "";
  generation.onToken = (word) => {
    text += word;
  };
  generation.onEnd = () => {
    const { sequence } = generation;
    json(response, 200, api.whole(id, body, text, sequence.tokens.slice(sequence.promptTokens), countsOf(generation)));
  };
}

function countsOf({ sequence }: Generation): Counts {
  return {
    promptTokens: sequence.promptTokens,
    cachedTokens: Math.max(0, sequence.cachedTokens),
    outputTokens: sequence.generated,
  };
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** vLLM's error shape, on every path. */
function fail(response: ServerResponse, status: number, type: string, message: string): void {
  json(response, status, { error: { message, type, param: null, code: status } });
}
