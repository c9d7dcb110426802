import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { ConnectionLimits } from '../../../src/gateway/edge/bounds.ts';

/** A socket with the parts that the bounds read: its address, and its end. */
function socketFrom(remoteAddress: string | undefined): Socket {
  return Object.assign(new EventEmitter(), { remoteAddress }) as unknown as Socket;
}

function openAll(limits: ConnectionLimits, address: string): Socket[] {
  const open: Socket[] = [];
  for (let tried = 0; tried < 200; tried += 1) {
    const socket = socketFrom(address);
    if (limits.admit(socket)) open.push(socket);
  }
  return open;
}

const bounds = { total: 100, reserve: 40, perAddress: 10 };

describe('connections', () => {
  it('one address has at most its share, and a closed one makes room', () => {
    let refused = 0;
    const limits = new ConnectionLimits(bounds, [], {
      connectionsRefused: {
        inc: () => {
          refused += 1;
        },
      },
    });
    const [first, ...others] = openAll(limits, '192.0.2.1');
    assert.equal(others.length, 9);
    assert.equal(refused, 190);
    first?.emit('close');
    assert.equal(openAll(limits, '192.0.2.1').length, 1);
    assert.equal(limits.total, 10);
  });

  it('unauthenticated callers of many addresses leave room for addresses from which good keys came', () => {
    const limits = new ConnectionLimits(bounds);
    limits.note('198.51.100.7');
    for (let last = 1; last <= 20; last += 1) openAll(limits, `192.0.2.${last}`);
    assert.equal(limits.total, 60);
    assert.equal(openAll(limits, '192.0.2.99').length, 0);
    assert.equal(openAll(limits, '198.51.100.7').length, 40, 'four times the share of a stranger');
  });

  it('a /64 of IPv6 is one address, and so is an IPv4 address mapped into IPv6', () => {
    const limits = new ConnectionLimits(bounds);
    assert.equal(openAll(limits, '2001:db8::1').length, 10);
    assert.equal(openAll(limits, '2001:db8::2').length, 0);
    assert.equal(openAll(limits, '2001:db8:0:1::1').length, 10);
    assert.equal(openAll(limits, '192.0.2.1').length, 10);
    assert.equal(openAll(limits, '::ffff:192.0.2.1').length, 0);
  });

  it('a trusted proxy is bounded by the total alone, because many clients come through it', () => {
    const limits = new ConnectionLimits(bounds, ['10.0.0.1']);
    assert.equal(openAll(limits, '10.0.0.1').length, 100);
  });

  it('one address opens no more than 1,000 connections at once, and a known one no more than 4,000', () => {
    const limits = new ConnectionLimits({ total: 10_000, reserve: 0, perAddress: 5_000 });
    limits.note('198.51.100.7');
    const open = (address: string) => {
      let opened = 0;
      for (let tried = 0; tried < 6_000; tried += 1) {
        const socket = socketFrom(address);
        if (limits.admit(socket)) opened += 1;
        socket.emit('close');
      }
      return opened;
    };
    const [stranger, known] = [open('192.0.2.1'), open('198.51.100.7')];
    assert.ok(stranger >= 1_000 && stranger < 1_300, String(stranger));
    assert.ok(known >= 4_000 && known < 4_800, String(known));
  });

  it('an address that is thrown out 38 times opens no more', () => {
    const limits = new ConnectionLimits({ total: 10_000, reserve: 0, perAddress: 5_000 });
    for (let times = 0; times < 38; times += 1) {
      assert.equal(limits.admit(socketFrom('192.0.2.1')), true);
      limits.blame('192.0.2.1');
    }
    assert.equal(openAll(limits, '192.0.2.1').length < 40, true);
    assert.equal(openAll(limits, '192.0.2.2').length, 200);
  });

  it('requests without a good key are counted by address', () => {
    const limits = new ConnectionLimits();
    let taken = 0;
    while (taken < 5_000 && limits.takeStranger('192.0.2.1')) taken += 1;
    assert.ok(taken >= 2_500 && taken < 2_900, String(taken));
    assert.equal(limits.takeStranger('192.0.2.2'), true);
  });

  it('an address is known for a day after its last valid key, and a new one within a minute costs nothing', (t) => {
    const clock = { ms: 1_000 };
    t.mock.method(performance, 'now', () => clock.ms);
    const [limits, address, dayMs] = [new ConnectionLimits(), '192.0.2.1', 86_400_000];
    const isKnownAfter = (ms: number) => {
      clock.ms += ms;
      return limits.isKnown(address);
    };
    assert.equal(limits.isKnown(address), false);
    limits.note(address);
    assert.deepEqual([isKnownAfter(dayMs - 1), isKnownAfter(1)], [true, false]);
    limits.note(address);
    clock.ms += 59_999;
    limits.note(address);
    assert.deepEqual([isKnownAfter(dayMs - 60_000), isKnownAfter(1)], [true, false], 'the second one was not noted');
    limits.note(address);
    for (let days = 0; days < 3; days += 1) {
      clock.ms += dayMs - 1;
      limits.note(address);
      assert.ok(isKnownAfter(0), 'each valid key counts anew');
    }
    assert.deepEqual([isKnownAfter(dayMs - 1), isKnownAfter(1)], [true, false]);
    assert.equal(limits.isKnown('192.0.2.2'), false);
  });

  it('a client that has left already takes no room', () => {
    const limits = new ConnectionLimits(bounds);
    assert.equal(limits.admit(socketFrom(undefined)), false);
    assert.equal(limits.total, 0);
  });
});
