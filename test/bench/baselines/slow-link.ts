/**
 * A TCP proxy that is as far away as a database in the next building: what goes either way arrives half of
 * `BASELINE_ROUND_TRIP_US` later.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

const delayMs = Number(process.env.BASELINE_ROUND_TRIP_US) / 2_000;
const target = { host: '127.0.0.1', port: Number(process.env.BASELINE_PORT), noDelay: true };
/** Timers count in whole milliseconds, and too long for this. A wait for a value that never changes is as short as needed. */
const stepMs = 0.05;
const never = new Int32Array(new SharedArrayBuffer(4));

interface Waiting {
  readonly to: Socket;
  readonly bytes: Buffer;
  readonly dueAt: number;
}

const waiting: Waiting[] = [];
let isPassing = false;

const server = createServer({ noDelay: true }, (client) => {
  const database = connect(target);
  for (const [from, to] of [
    [client, database],
    [database, client],
  ] as const) {
    from.on('data', (bytes) => {
      waiting.push({ to, bytes, dueAt: performance.now() + delayMs });
      if (!isPassing) pass();
    });
    from.on('error', () => undefined); // Its close ends the other side.
    from.on('close', () => to.destroy());
  }
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));

/** Passes on what is due, and between two looks lets what has come be read. */
function pass(): void {
  isPassing = true;
  const now = performance.now();
  while (waiting[0] !== undefined && waiting[0].dueAt <= now) {
    const next = waiting.shift();
    next?.to.write(next.bytes);
  }
  isPassing = waiting.length > 0;
  if (!isPassing) return;
  Atomics.wait(never, 0, 0, stepMs);
  setImmediate(pass);
}
