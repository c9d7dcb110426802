/** A FIX session through the second and third trouble of a kind, and what is left of those before. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { eventually } from '../../support/eventually.ts';
import type { Exchange } from '../../support/fix/exchange.ts';
import { begin, MemoryRecord, ofType, textsOf } from '../../support/fix/session.ts';

/** Refuses so many Logons. */
function refuse(exchange: Exchange, count: number): void {
  let left = count;
  exchange.intercept = (message) => {
    if (message.type !== messageTypes.Logon || left === 0) return false;
    left -= 1;
    exchange.nextIn = message.number + 1;
    exchange.send(messageTypes.Logout, [tags.Text, 'wrong password']);
    return true;
  };
}

describe('a FIX session that has had trouble before', { concurrency: 8 }, () => {
  it('a session goes on to the next address each time that the present one does not come up, also after it had been up', async (context) => {
    const tried: string[] = [];
    let down = 'first';
    const { exchange, session, up } = await begin(context, {
      addresses: ['first', 'second'],
      connect: async ({ port }, address) => {
        tried.push(address);
        if (address === down) throw new Error('nobody listens');
        return connect({ host: '127.0.0.1', port });
      },
    });
    await up();
    exchange.cut();
    await eventually(() => assert.equal(tried.length, 3));
    await up();
    down = 'second';
    exchange.cut();
    await eventually(() => assert.equal(tried.at(-1), 'first'));
    await up();
    assert.deepEqual(tried, ['first', 'second', 'second', 'second', 'first']);
    assert.equal(session.status().address, 'first');
  });

  it('refused Logons count in a row: those before a session was up count no more, and an operator can go on as often as he wants', async (context) => {
    const { exchange, session, troubles, up } = await begin(context);
    for (let round = 0; round < 2; round += 1) {
      refuse(exchange, 2);
      if (round > 0) exchange.cut();
      await eventually(() => assert.equal(session.status().refusals, 2));
      await up();
      assert.equal(session.status().refusals, 0);
    }
    assert.ok(!troubles.includes('logon_stopped'));
    for (let round = 1; round <= 2; round += 1) {
      refuse(exchange, 3);
      exchange.cut();
      await eventually(() => assert.equal(session.status().state, 'stopped'));
      session.resume();
      await up();
    }
    assert.equal(troubles.filter((what) => what === 'logon_refused').length, 10);
  });

  it('messages that could not be stored come again until they are stored, each once', async (context) => {
    const record = new MemoryRecord();
    const { exchange, states, up } = await begin(context, { record });
    await up();
    let failures = 3;
    const { received } = record;
    record.received = async function (...args) {
      if (args[0].length > 0 && failures > 0) {
        failures -= 1;
        throw new Error('the record is away');
      }
      return received.apply(this, args);
    };
    exchange.send('B', [tags.Text, 'one']);
    exchange.send('B', [tags.Text, 'two']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one', 'two']));
    await up();
    assert.ok(states.filter((state) => state === 'down').length >= 1);
    assert.equal(failures, 0);
  });

  it('a session whose numbers cannot be read closes each connection, and logs on once they can', async (context) => {
    const record = new MemoryRecord();
    const sockets: Socket[] = [];
    const areClosed: boolean[] = [];
    const { numbers } = record;
    let failures = 3;
    record.numbers = async () => {
      if (failures === 0) return numbers.call(record);
      failures -= 1;
      throw new Error('the record is away');
    };
    const { exchange, up } = await begin(context, {
      record,
      connect: async ({ port }) => {
        areClosed.push(sockets.every(({ destroyed }) => destroyed));
        const socket = connect({ host: '127.0.0.1', port });
        sockets.push(socket);
        return socket;
      },
    });
    await up();
    assert.deepEqual(areClosed, [true, true, true, true]);
    assert.equal(ofType(exchange, messageTypes.Logon).length, 1);
  });

  it('messages that were passed over are told of once, over the first connection that comes up, however many ended before', async (context) => {
    const record = new MemoryRecord();
    const { exchange, missed, up } = await begin(context, { record });
    await up();
    let cuts = 3;
    exchange.intercept = (message) => {
      if (message.type === messageTypes.ResendRequest) {
        const [from, to] = [Number(message.get(tags.BeginSeqNo)), exchange.nextOut];
        exchange.nextIn = message.number + 1;
        exchange.write(
          from,
          messageTypes.SequenceReset,
          [tags.PossDupFlag, 'Y'],
          [tags.GapFillFlag, 'Y'],
          [tags.NewSeqNo, `${to}`],
        );
        return true;
      }
      if (message.type !== messageTypes.TestRequest || cuts === 0 || record.passedOver.length === 0) return false;
      cuts -= 1;
      exchange.cut();
      return true;
    };
    exchange.sendIntoNothing('B', [tags.Text, 'lost']);
    exchange.cut();
    await eventually(() => assert.equal(cuts, 0));
    await up();
    await eventually(() => assert.equal(missed.length, 1));
    exchange.cut();
    await eventually(() => assert.equal(exchange.isConnected, true));
    await up();
    assert.deepEqual([missed.length, record.passedOver.length], [1, 1]);
  });
});

it('a FIX session leaves no listener and no timer behind for each connection that it had', async (context) => {
  const { exchange, states, signal, up } = await begin(context);
  await up();
  const left = () => [
    getEventListeners(signal, 'abort').length,
    process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length,
  ];
  const counts: number[][] = [];
  for (let round = 1; round <= 4; round += 1) {
    exchange.cut();
    await eventually(() => assert.equal(states.length, 2 * round + 1));
    counts.push(left());
  }
  assert.deepEqual(counts.at(-1), counts[0]);
});
