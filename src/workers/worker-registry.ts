import { Worker } from "./worker.ts";

export interface WorkerAddress {
  address: string;
  name: string;
  pool: string;
  labels?: Readonly<Record<string, string>>;
}

/** All workers of all pools. A worker that stays through a change of configuration keeps its state. */
export class WorkerRegistry {
  readonly #byAddress = new Map<string, Worker>();

  /** Makes the set of workers the given one; returns those that came and those that went. */
  replace(addresses: readonly WorkerAddress[]): { added: Worker[]; removed: Worker[] } {
    const wanted = new Map(addresses.map((a) => [a.address, a]));
    const removed = [...this.#byAddress.values()].filter((worker) => wanted.get(worker.address)?.pool !== worker.pool);
    for (const worker of removed) this.#byAddress.delete(worker.address);
    const added: Worker[] = [];
    for (const { address, name, pool, labels = {} } of wanted.values()) {
      const known = this.#byAddress.get(address);
      if (known !== undefined) {
        known.labels = labels;
        continue;
      }
      const worker = new Worker(address, name, pool);
      worker.labels = labels;
      this.#byAddress.set(address, worker);
      added.push(worker);
    }
    return { added, removed };
  }

  get(address: string): Worker | undefined {
    return this.#byAddress.get(address);
  }

  all(): Iterable<Worker> {
    return this.#byAddress.values();
  }
}
