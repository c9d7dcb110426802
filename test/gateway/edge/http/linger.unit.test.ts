import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { lingerOn, watchLastChunk } from '../../../../src/gateway/edge/http/linger.ts';

/** A connection that counts what is done to it. */
class Line extends EventEmitter {
  bytesRead = 5_000;
  writableEnded = false;
  isDestroyed = false;

  end(): void {
    this.writableEnded = true;
  }

  destroy(): void {
    this.isDestroyed = true;
  }

  get state(): string {
    return this.isDestroyed ? 'closed' : this.writableEnded ? 'ended' : 'open';
  }
}

const usual = { leastMs: 0, mostMs: Number.POSITIVE_INFINITY, maxBytes: 100_000, stepMs: 3_000 };

describe('a connection after its last answer', () => {
  for (const [name, rules, sent, states] of [
    ['of a client that sends nothing is ended at the first step and closed at the next', {}, [0, 0], 'ended closed'],
    ['is read on while its client uploads', {}, [16_384, 16_384, 16_384], 'open open open'],
    ['is ended at the first step in which its client sends less', {}, [16_384, 16_383, 0], 'open ended closed'],
    ['is read on up to the last byte allowed', {}, [50_000, 50_000], 'open open'],
    ['is ended by the first byte more than allowed', {}, [50_000, 50_001, 20_000], 'open ended closed'],
    ['is ended when its time is over, although its client uploads', { mostMs: 0 }, [20_000], 'ended'],
    [
      'stays half open for the least time',
      { leastMs: Number.POSITIVE_INFINITY },
      [0, 0, 0, 0],
      'ended ended ended ended',
    ],
  ] as const) {
    it(`a connection after its last answer ${name}`, (context) => {
      context.mock.timers.enable({ apis: ['setInterval'] });
      const line = new Line();
      lingerOn(line as unknown as Socket, { ...usual, ...rules });
      const seen = sent.map((bytes) => {
        line.bytesRead += bytes;
        context.mock.timers.tick(usual.stepMs);
        return line.state;
      });
      assert.equal(seen.join(' '), states);
    });
  }

  it('a connection that has closed after its last answer is not looked at any more', (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] });
    const line = new Line();
    lingerOn(line as unknown as Socket, usual);
    line.emit('close');
    context.mock.timers.tick(10 * usual.stepMs);
    assert.equal(line.state, 'open');
  });
});

describe('the last chunk of a body that is dropped', () => {
  for (const [name, packets, at] of [
    ['in one packet', ['5\r\nhello\r\n0\r\n\r\n'], 0],
    ['byte by byte', [...'x\r\n0\r\n\r\n'], 7],
    ['over two packets', ['hello\r\n0\r', '\n\r\n'], 1],
    ['behind data of any size', ['y'.repeat(70_000), '0\r\n\r\n'], 1],
  ] as const) {
    it(`the last chunk of a body that is dropped is seen ${name}, once`, () => {
      const line = new Line();
      const seen: number[] = [];
      let packet = 0;
      watchLastChunk(line as unknown as Socket, () => seen.push(packet));
      for (; packet < packets.length; packet += 1) line.emit('data', Buffer.from(packets[packet] ?? ''));
      line.emit('data', Buffer.from('0\r\n\r\n'));
      assert.deepEqual(seen, [at]);
      assert.equal(line.listenerCount('data'), 0);
    });
  }

  it('what is not quite a last chunk is none', () => {
    const line = new Line();
    watchLastChunk(line as unknown as Socket, () => assert.fail('it was taken for the last chunk'));
    for (const text of ['0\r\n', '\r', '0\r\n\r', '0\n\r\n', '\r\n\r\n']) line.emit('data', Buffer.from(text));
    assert.equal(line.listenerCount('data'), 1);
  });
});
