import { readFileSync, statSync } from 'node:fs';
import { shownPath } from './files.ts';
import { logFile } from './settings.ts';

/** What the sandbox's webhook receiver tells of one partner's events, from now on. */
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

  /** What it says when events do not come: that it refused some, where it did. */
  whyNot(): string {
    const hasRefused = this.#lines().some((line) => line.includes(`${this.partner}: something`));
    return hasRefused ? ` It refused what the secret it has does not verify: ${shownPath(this.#path)}` : '';
  }

  #lines(): string[] {
    return readFileSync(this.#path).subarray(this.#from).toString('utf8').split('\n');
  }
}
