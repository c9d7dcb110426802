import assert from 'node:assert/strict';

/** Fails unless a program of the first day did all it is there for, in whichever language it is written. */
export function assertFirstDay(output: string): void {
  const lines = output
    .trim()
    .split('\n')
    // A report of the exchange may be quicker than the gateway's wait for the answer that was lost.
    .map((line) => line.replaceAll(/ord_\w+/g, 'ord').replace('lost ord pending', 'lost ord uncertain'));
  assert.deepEqual(lines.slice(0, 5), [
    'placed ord',
    'repeated ord',
    'lost ord uncertain',
    'lost ord uncertain',
    'refused order_rejected insufficient_funds',
  ]);
  assert.deepEqual(lines.slice(5, 8).sort(), ['settled ord filled', 'settled ord pending', 'settled ord refused']);
  assert.deepEqual(lines.slice(8), ['cancelled ord', 'listed 4', 'verified webhooks']);
}
