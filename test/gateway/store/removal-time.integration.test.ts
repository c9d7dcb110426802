import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { removalTime } from '../../../src/gateway/operators/telemetry/database-clock.ts';
import type { ClockAgreement } from '../../../src/gateway/trading/broker/clock.ts';
import { StartGate } from '../../../src/gateway/trading/submission/start-gate.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { openSettling, type Settling } from '../../support/settling.ts';

const minuteMs = 60_000;
/** The database answers within this. */
const soonMs = 10_000;

describe('what is removed for its age', () => {
  let settling: Settling;
  const brokerClocks: { known: ClockAgreement } = { known: 'in_step' };
  const gate = new StartGate();
  const lines: string[] = [];
  const log = createLogger({ name: 'test', level: 'info', destination: { write: (line: string) => lines.push(line) } });
  before(async () => {
    settling = await openSettling();
    gate.open();
  });
  after(() => settling.close());
  beforeEach(() => {
    settling.clock.moveTo(Date.now());
    brokerClocks.known = 'in_step';
  });
  const timeOf = () => removalTime({ ...settling, brokerClocks, gate, log })('feed-retention');

  /** Business time for whom it is `realMs` in real time. */
  const businessTime = (realMs: number) => realMs + settling.clock.now() - settling.clock.realNow();
  const assertNear = (found: number | undefined, expected: number) =>
    assert.ok(Math.abs((found ?? 0) - expected) < soonMs, `${found} is not near ${expected}`);

  it("is old by this process's clock and by the database's, in business time", async () => {
    const { clock } = settling;
    assertNear(await timeOf(), businessTime(Date.now()));
    clock.advance(30 * minuteMs);
    assertNear(await timeOf(), businessTime(Date.now()));
    clock.moveTo(Date.now() - 30 * minuteMs);
    assertNear(await timeOf(), clock.now());
  });

  it('is nothing while a clock is wrong, and the log says so once', async () => {
    const { clock, database } = settling;
    const time = removalTime({ database, clock, brokerClocks, gate, log });
    lines.length = 0;
    clock.advance(2 * 60 * minuteMs);
    assert.equal(await time('feed-retention'), undefined);
    assert.equal(await time('feed-retention'), undefined);
    assert.equal(lines.filter((line) => line.includes('nothing is removed')).length, 1);
    clock.moveTo(Date.now());
    assert.ok((await time('feed-retention')) !== undefined);
    brokerClocks.known = 'apart';
    assert.equal(await time('feed-retention'), undefined);
  });

  it('is nothing before the broker has answered since the start, and so has stated its time', async () => {
    const starting = new StartGate();
    brokerClocks.known = 'unknown';
    const time = removalTime({ ...settling, brokerClocks, gate: starting, log });
    assert.equal(await time('feed-retention'), undefined);
    starting.open();
    assert.ok((await time('feed-retention')) !== undefined);
  });
});
