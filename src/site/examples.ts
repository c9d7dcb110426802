import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A request that was made of a real gateway, and what it answered. */
export interface Example {
  readonly title: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    /** JSON, or the name of a file. */
    readonly body?: unknown;
  };
  readonly answer: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

/** The examples recorded of a real gateway: requests by their operation's local name, events by their type. */
export interface Examples {
  readonly operations: Readonly<Record<string, readonly Example[]>>;
  readonly events: Readonly<Record<string, unknown>>;
}

/** Where the recorded examples are kept. */
export const examplesFile = join(import.meta.dirname, 'examples.json');

/** The address in the recorded examples where a gateway writes its own. */
export const recordedBaseUrl = 'https://marina.example';

/** Reads the recorded examples, as a gateway that is reached there would answer. */
export function readExamples(baseUrl = recordedBaseUrl): Examples {
  return JSON.parse(readFileSync(examplesFile, 'utf8').replaceAll(recordedBaseUrl, baseUrl)) as Examples;
}
