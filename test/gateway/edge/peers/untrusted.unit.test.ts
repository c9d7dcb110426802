import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Counter } from 'prom-client';
import { countUntrusted } from '../../../../src/gateway/edge/peers/untrusted.ts';
import type { Logger } from '../../../../src/kit/log.ts';

function start() {
  const counter = new Counter({ name: 'untrusted', help: 'x', labelNames: ['kind', 'reason'], registers: [] });
  const clock = { now: 0 };
  const logged: object[] = [];
  const log = { warn: (fields: object) => void logged.push(fields) } as unknown as Logger;
  const distrust = countUntrusted(counter, log, () => clock.now);
  const counts = async () => {
    const { values } = await counter.get();
    return Object.fromEntries(values.map(({ labels, value }) => [`${labels.kind} ${labels.reason}`, value]));
  };
  return { distrust, clock, logged, counts };
}

describe('a message of NATS that is not believed', () => {
  it('a message that is not believed is counted each time, by its kind and reason', async () => {
    const { distrust, counts } = start();
    for (let times = 0; times < 3; times += 1) distrust('message', 'forged');
    distrust('message', 'late');
    distrust('entry', 'forged');
    assert.deepEqual(await counts(), { 'message forged': 3, 'message late': 1, 'entry forged': 1 });
  });

  it('a message that is not believed is logged once a minute for each kind and reason, and the first one at once', () => {
    const { distrust, clock, logged } = start();
    for (const [now, lines] of [
      [0, 1],
      [59_999, 1],
      // A minute after the line, and not after the last message.
      [60_000, 2],
      [60_001, 2],
      [119_999, 2],
      [120_000, 3],
    ] as const) {
      clock.now = now;
      distrust('message', 'forged');
      assert.equal(logged.length, lines, `at ${now} ms`);
    }
    distrust('message', 'late');
    distrust('entry', 'forged');
    distrust('message', 'forged');
    assert.deepEqual(logged.slice(3), [
      { kind: 'message', reason: 'late' },
      { kind: 'entry', reason: 'forged' },
    ]);
  });
});
