import { setTimeout as delay } from 'node:timers/promises';
import { RawClient, type Target } from './http1-client.ts';

const restMs = 20;
const boundMs = 10_000;

/** An honest partner that makes one call after another, in turn on a connection it keeps and on a new one. */
export class HonestCalls {
  calls = 0;
  readonly failures: string[] = [];
  readonly #ended: Promise<void>;
  #isOver = false;

  constructor(
    private readonly target: Target,
    key: string,
  ) {
    this.#ended = this.#run(`GET /v1/limits HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  }

  /** Resolves once the last call has ended. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#ended;
  }

  async #run(text: string): Promise<void> {
    const kept = new RawClient(this.target);
    while (!this.#isOver) {
      await this.#call(kept, text);
      const own = new RawClient(this.target);
      await this.#call(own, text);
      own.close();
      await delay(restMs);
    }
    kept.close();
  }

  async #call(client: RawClient, text: string): Promise<void> {
    this.calls += 1;
    const before = client.count;
    await client.send([text], 'one packet');
    const { statuses } = await client.answers(before + 1, boundMs);
    if (statuses[before] !== 200) this.failures.push(`${statuses[before] ?? 'no answer'}`);
  }
}
