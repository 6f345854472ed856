import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP connection to somebody that can be cut and mended. */
export class BreakableProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut = false;

  constructor(target: { host: string; port: number }) {
    this.#server = createServer((client) => {
      if (this.#cut) return void client.destroy();
      const upstream = connect(target);
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket.on("close", () => this.#sockets.delete(socket));
      }
      client.on("error", () => upstream.destroy()).on("close", () => upstream.destroy());
      upstream.on("error", () => client.destroy()).on("close", () => client.destroy());
      client.pipe(upstream).pipe(client);
    });
  }

  listen(): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(0, "127.0.0.1", () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  /** Breaks what is connected, and lets nobody in. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#cut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
