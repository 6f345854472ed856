import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the admin port shows. It is for operators: bind it where only they are. */
export interface AdminPages {
  /** Prometheus text. */
  metrics(): Promise<string>;
  /** Live state as plain data: workers, recent decisions, configuration. */
  state(): unknown;
  ready(): boolean;
  /** Why a request was decided as it was, by the id of its decision or Envoy's request id. */
  decision(id: string): unknown;
  /** What would be decided on a request now; `query` has its path, tenant headers and so on. */
  explain(query: URLSearchParams, body: Buffer): Promise<{ status: number; answer: unknown }>;
}

const MAX_EXPLAINED_BYTES = 32 << 20;

/** Serves `/metrics`, `/state`, `/decisions/ID`, `/explain`, `/healthz` and `/readyz`. */
export class AdminServer {
  readonly #server: Server;

  constructor(pages: AdminPages) {
    this.#server = createServer((request, response) => {
      void this.#answer(pages, request, response).catch(() => response.destroy());
    });
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #answer(pages: AdminPages, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://admin");
    const send = (status: number, type: string, body: string) =>
      response.writeHead(status, { "content-type": type }).end(body);
    const json = (status: number, value: unknown) => send(status, "application/json", JSON.stringify(value, null, 2));
    const [, page, id] = url.pathname.split("/");
    if (page === "decisions" && id !== undefined) {
      const found = pages.decision(decodeURIComponent(id));
      return void json(found === undefined ? 404 : 200, found ?? { error: `no decision ${id} is remembered` });
    }
    if (page === "explain" && request.method === "POST") {
      const { status, answer } = await pages.explain(url.searchParams, await readBody(request));
      return void json(status, answer);
    }
    switch (url.pathname) {
      case "/metrics":
        return void send(200, "text/plain; version=0.0.4; charset=utf-8", await pages.metrics());
      case "/state":
        return void json(200, pages.state());
      case "/healthz":
        return void send(200, "text/plain", "ok\n");
      case "/readyz":
        return void (pages.ready() ? send(200, "text/plain", "ready\n") : send(503, "text/plain", "not ready\n"));
      default:
        return void send(404, "text/plain", "pages: /metrics /state /decisions/ID /explain (POST) /healthz /readyz\n");
    }
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_EXPLAINED_BYTES) throw new Error("too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
