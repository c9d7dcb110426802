import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Silence } from '../../../src/fix-adapter/session/silence.ts';

/** With a heartbeat of 10 s, a silence is tested after 12 s and ends the connection after 24 s. */
const heartbeatMs = 10_000;

describe('the silence of the other side', () => {
  it('is tested once, a fifth of a heartbeat after one was due', () => {
    const silence = new Silence(heartbeatMs, 0);
    const due = [12_000, 12_001, 12_002, 23_999].map((now) => silence.due(now));
    assert.deepEqual(due, ['nothing', 'test', 'nothing', 'nothing']);
  });

  it('ends the connection when the time of a test and of its answer is over', () => {
    const silence = new Silence(heartbeatMs, 0);
    assert.deepEqual(
      [12_001, 24_000, 24_001].map((now) => silence.due(now)),
      ['test', 'nothing', 'gone'],
    );
  });

  it('is tested again each time that it begins again, and counts from the last message', () => {
    const silence = new Silence(heartbeatMs, 0);
    for (let count = 1; count <= 3; count += 1) {
      const readAt = count * 20_000;
      silence.read(readAt);
      assert.equal(silence.due(readAt + 12_000), 'nothing');
      assert.equal(silence.due(readAt + 12_001), 'test');
    }
  });

  it('ends the connection although no test was due between, as after the process stood still', () => {
    assert.equal(new Silence(heartbeatMs, 0).due(24_001), 'gone');
  });
});
