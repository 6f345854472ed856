import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the admin port shows. It is for operators: bind it where only they are. */
export interface AdminPages {
  /** Prometheus text. */
  metrics(): Promise<string>;
  /** Live state as plain data: workers, recent decisions, configuration. */
  state(): unknown;
  ready(): boolean;
}

/** Serves `/metrics`, `/state`, `/healthz` and `/readyz`. */
export class AdminServer {
  readonly #server: Server;

  constructor(pages: AdminPages) {
    this.#server = createServer((request, response) => {
      void this.#answer(pages, request.url ?? "/", response);
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

  async #answer(pages: AdminPages, url: string, response: ServerResponse): Promise<void> {
    const send = (status: number, type: string, body: string) =>
      response.writeHead(status, { "content-type": type }).end(body);
    switch (url.split("?")[0]) {
      case "/metrics":
        return void send(200, "text/plain; version=0.0.4; charset=utf-8", await pages.metrics());
      case "/state":
        return void send(200, "application/json", JSON.stringify(pages.state(), null, 2));
      case "/healthz":
        return void send(200, "text/plain", "ok\n");
      case "/readyz":
        return void (pages.ready() ? send(200, "text/plain", "ready\n") : send(503, "text/plain", "not ready\n"));
      default:
        return void send(404, "text/plain", "pages: /metrics /state /healthz /readyz\n");
    }
  }
}
