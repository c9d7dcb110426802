import { readFileSync, statSync } from 'node:fs';
import { logFile } from './settings.ts';

/** The lines of the sandbox's webhook receiver about one partner's events, from now on. */
export class ReceiverLog {
  readonly #path: string;
  readonly #from: number;

  constructor(
    dataDir: string,
    private readonly partner: string,
  ) {
    this.#path = logFile(dataDir, 'receiver');
    this.#from = statSync(this.#path).size;
  }

  /** Its lines about these events, which it verified; undefined until it has all of them. */
  linesOf(eventIds: readonly string[]): string[] | undefined {
    const lines = this.#lines();
    const found = eventIds.flatMap((id) => lines.find((line) => line.includes(id)) ?? []);
    return found.length === eventIds.length ? found : undefined;
  }

  /** Explains why events do not come: the receiver refused some, if it did. */
  whyNot(): string {
    const hasRefused = this.#lines().some((line) => line.includes(`${this.partner}: something`));
    if (!hasRefused) return '';
    return ' It refused events that webhook_secret in sandbox.json does not verify; make clean starts from nothing.';
  }

  #lines(): string[] {
    return readFileSync(this.#path).subarray(this.#from).toString('utf8').split('\n');
  }
}
