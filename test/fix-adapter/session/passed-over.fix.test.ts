import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { eventually } from '../../support/eventually.ts';
import { Exchange } from '../../support/fix/exchange.ts';
import { begin, MemoryRecord, ofType, textMessage, textsOf } from '../../support/fix/session.ts';

const gapFill = [
  [tags.PossDupFlag, 'Y'],
  [tags.GapFillFlag, 'Y'],
] as const;

/** An exchange that answers each ResendRequest by one gap fill up to its next number, whatever was asked for. */
function fillsEverything(exchange: Exchange): void {
  exchange.intercept = (message) => {
    if (message.type !== messageTypes.ResendRequest) return false;
    exchange.nextIn = message.number + 1;
    const from = Number(message.get(tags.BeginSeqNo));
    exchange.write(from, messageTypes.SequenceReset, ...gapFill, [tags.NewSeqNo, String(exchange.nextOut)]);
    return true;
  };
}

describe('messages that are passed over in a FIX session', { concurrency: 8 }, () => {
  it('are stored as passed over with the number behind them, when a gap fill answers a reconnect', async (context) => {
    const record = new MemoryRecord();
    Object.assign(record, { startedAt: Date.now(), nextIn: 3 });
    const exchange = await Exchange.start();
    Object.assign(exchange, { nextOut: 8 });
    fillsEverything(exchange);
    const { missed, states, up } = await begin(context, { record, exchange });
    await up();
    assert.equal(record.passedOver.length, 1);
    const [[from, to] = [0, 0]] = record.passedOver;
    assert.equal(from, 3);
    assert.ok(to > 8);
    assert.deepEqual([missed.length, states], [1, ['up']]);
  });

  it('count also if each is filled alone, because the number of such a gap fill is that of the message', async (context) => {
    const record = new MemoryRecord();
    Object.assign(record, { startedAt: Date.now(), nextIn: 1 });
    const exchange = await Exchange.start();
    exchange.sendIntoNothing(messageTypes.Heartbeat);
    const { missed, up } = await begin(context, { record, exchange });
    await up();
    assert.deepEqual([record.passedOver.length, missed.length], [1, 1]);
  });

  it('do not count if this connection has seen that they were administrative', async (context) => {
    const { exchange, missed, record, up } = await begin(context);
    await up();
    exchange.sendIntoNothing('B', [tags.Text, 'one']);
    exchange.send(messageTypes.Heartbeat);
    exchange.send('B', [tags.Text, 'two']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one', 'two']));
    assert.ok(ofType(exchange, messageTypes.ResendRequest).length >= 1);
    assert.deepEqual([record.passedOver, missed], [[], []]);
  });

  it('are noticed when a gap fill that nobody asked for comes while the session is up', async (context) => {
    const { exchange, missed, record, states, up } = await begin(context);
    await up();
    const { nextOut } = exchange;
    exchange.write(nextOut, messageTypes.SequenceReset, [tags.GapFillFlag, 'Y'], [tags.NewSeqNo, String(nextOut + 3)]);
    exchange.nextOut += 3;
    exchange.send('B', [tags.Text, 'behind']);
    await eventually(() => assert.deepEqual(textsOf(record), ['behind']));
    await eventually(() => assert.equal(missed.length, 1));
    assert.equal(record.passedOver.length, 1);
    assert.deepEqual(states, ['up']);
  });

  it('are none when a gap fill covers no number but its own', async (context) => {
    const { exchange, missed, record, up } = await begin(context);
    await up();
    const { nextOut } = exchange;
    exchange.write(nextOut, messageTypes.SequenceReset, [tags.GapFillFlag, 'Y'], [tags.NewSeqNo, String(nextOut + 1)]);
    exchange.nextOut += 1;
    exchange.send('B', [tags.Text, 'behind']);
    await eventually(() => assert.deepEqual(textsOf(record), ['behind']));
    assert.deepEqual([record.passedOver, missed], [[], []]);
  });

  it('are stored as passed over when a gap fill begins before what is missing', async (context) => {
    const record = new MemoryRecord();
    Object.assign(record, { startedAt: Date.now(), nextIn: 5 });
    const exchange = await Exchange.start();
    Object.assign(exchange, { nextOut: 8 });
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.ResendRequest) return false;
      exchange.nextIn = message.number + 1;
      exchange.write(2, messageTypes.SequenceReset, ...gapFill, [tags.NewSeqNo, String(exchange.nextOut)]);
      return true;
    };
    const { missed, up } = await begin(context, { record, exchange });
    await up();
    assert.deepEqual([record.passedOver.length, missed.length], [1, 1]);
  });

  it('are stored as passed over when the other side resets its numbers', async (context) => {
    const { exchange, missed, record, up } = await begin(context);
    await up();
    exchange.nextOut += 10;
    exchange.write(1, messageTypes.SequenceReset, [tags.NewSeqNo, String(exchange.nextOut)]);
    await eventually(() => assert.equal(missed.length, 1));
    assert.equal(record.passedOver.length, 1);
    assert.equal(record.nextIn, exchange.nextOut);
  });

  it('are stored as passed over by a later commit if the first one fails', async (context) => {
    const { exchange, missed, record, states, up } = await begin(context);
    await up();
    fillsEverything(exchange);
    record.failsAt = 'received';
    const { nextOut } = exchange;
    exchange.nextOut += 3;
    exchange.write(nextOut, messageTypes.SequenceReset, [tags.GapFillFlag, 'Y'], [tags.NewSeqNo, String(nextOut + 3)]);
    await eventually(() => assert.deepEqual(states, ['up', 'down', 'up']));
    await eventually(() => assert.equal(missed.length, 1));
    assert.ok(record.passedOver.length >= 1);
  });

  it('are told of over the next connection if the first one ended before it was up', async (context) => {
    const record = new MemoryRecord();
    Object.assign(record, { startedAt: Date.now(), nextIn: 3 });
    const exchange = await Exchange.start();
    Object.assign(exchange, { nextOut: 8 });
    fillsEverything(exchange);
    const fills = exchange.intercept;
    let cuts = 0;
    exchange.intercept = (message, from) => {
      // The gap is closed by now, and the session tests the line before it is up.
      if (message.type === messageTypes.TestRequest && cuts < 1 && record.passedOver.length > 0) {
        cuts += 1;
        exchange.cut();
        return true;
      }
      return fills(message, from);
    };
    const { missed, states, up } = await begin(context, { record, exchange });
    await up();
    assert.equal(cuts, 1);
    await eventually(() => assert.deepEqual([missed.length, states], [1, ['up']]));
  });
});

describe('a message that a FIX session cannot use', { concurrency: 8 }, () => {
  it('is rejected, noted with its bytes and passed over once, if it cannot be read', async (context) => {
    const { exchange, missed, record, states, up } = await begin(context);
    await up();
    const number = exchange.nextOut;
    exchange.raw(textMessage(exchange, '8', `${tags.ClOrdID}=ord_a\x01abc=1\x01`));
    exchange.send('B', [tags.Text, 'next']);
    await eventually(() => assert.deepEqual(textsOf(record), ['next']));
    const [unread] = record.applied;
    assert.deepEqual([unread?.type, unread?.isWhole, unread?.get(tags.ClOrdID)], ['8', false, 'ord_a']);
    assert.ok(unread?.bytes.toString('latin1').endsWith('11=ord_a\x01abc=1\x01'));
    await eventually(() => assert.equal(ofType(exchange, messageTypes.Reject).length, 1));
    const [reject] = ofType(exchange, messageTypes.Reject);
    assert.deepEqual([reject?.get(tags.RefSeqNum), reject?.get(tags.RefMsgType)], [String(number), '8']);
    await eventually(() => assert.equal(missed.length, 1));
    assert.equal(record.passedOver.length, 1);
    assert.deepEqual([states, ofType(exchange, messageTypes.ResendRequest).length], [['up'], 0]);
  });

  it('is answered by BusinessMessageReject and noted, if its type is not supported', async (context) => {
    const { exchange, missed, record, states, troubles, up } = await begin(context);
    await up();
    const number = exchange.nextOut;
    for (const type of ['B', 'AE', 'D', '8', '9', 'j', '3']) exchange.send(type, [tags.Text, type]);
    exchange.send(messageTypes.TestRequest, [tags.TestReqID, 'end']);
    await eventually(() =>
      assert.ok(ofType(exchange, messageTypes.Heartbeat).some((beat) => beat.get(tags.TestReqID) === 'end')),
    );
    assert.deepEqual(
      ofType(exchange, messageTypes.BusinessMessageReject).map((reject) =>
        [tags.RefSeqNum, tags.RefMsgType, tags.BusinessRejectReason].map((tag) => reject.get(tag)),
      ),
      [
        [String(number), 'B', '3'],
        [String(number + 1), 'AE', '3'],
        [String(number + 2), 'D', '3'],
      ],
    );
    assert.deepEqual(
      record.applied.map(({ type }) => type),
      ['B', 'AE', 'D', '8', '9', 'j', '3'],
    );
    assert.equal(troubles.filter((what) => what === 'unsupported').length, 3);
    assert.deepEqual([states, missed, record.passedOver], [['up'], [], []]);
  });

  it('does not end the connection, however many there are', async (context) => {
    const { exchange, record, states, up } = await begin(context);
    await up();
    for (let count = 0; count < 3_000; count += 1) exchange.send('B', [tags.Text, String(count)]);
    await eventually(() => assert.equal(record.applied.length, 3_000));
    assert.deepEqual(states, ['up']);
  });
});
