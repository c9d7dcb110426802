import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { ProcessExit } from './keeper-protocol.ts';

/** How a process ended, in words. */
export function describeExit({ code, signal }: ProcessExit): string {
  return signal === null ? `ended with code ${code}` : `was ended by ${signal}`;
}

/** The end of a log, for messages about why its process ended. */
export function lastLines(path: string, count = 15): string {
  try {
    const file = openSync(path, 'r');
    try {
      const { size } = fstatSync(file);
      const buffer = Buffer.alloc(Math.min(size, 16_384));
      readSync(file, buffer, 0, buffer.length, size - buffer.length);
      const lines = buffer.toString('utf8').trimEnd().split('\n').slice(-count);
      return lines.map((line) => `    ${line}`).join('\n');
    } finally {
      closeSync(file);
    }
  } catch {
    return '    (it wrote nothing)';
  }
}
