import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { parseDays } from '../../../src/fix-adapter/session/schedule.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { eventually } from '../../support/eventually.ts';
import { Exchange } from '../../support/fix/exchange.ts';
import { always, begin, MemoryRecord, ofType, textMessage, textsOf, withSum } from '../../support/fix/session.ts';

const separator = '\x01';

describe('a FIX session', { concurrency: 8 }, () => {
  it('outlives a test whose id cannot be written back', async (context) => {
    const { exchange, record, states, up } = await begin(context);
    await up();
    exchange.raw(textMessage(exchange, messageTypes.TestRequest, `${tags.TestReqID}=caf\xe9${separator}`));
    exchange.send('B', [tags.Text, 'one']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one']));
    await eventually(() => assert.ok(ofType(exchange, messageTypes.Heartbeat).length >= 1));
    assert.deepEqual(states, ['up']);
  });

  it('outlives a message of an unwritable type that names somebody else', async (context) => {
    const { exchange, troubles, states, up } = await begin(context);
    await up();
    const bytes = textMessage(exchange, '\xe9', '').toString('latin1').replace('49=EXCHANGE', '49=SOMEBODY');
    exchange.raw(withSum(bytes));
    await eventually(() => assert.ok(troubles.includes('not_ours')));
    await eventually(() => assert.deepEqual(states, ['up', 'down', 'up']));
  });

  it('comes back soon from each of many breaks, if it had come up', async (context) => {
    const { exchange, states } = await begin(context, { settings: { longestReconnectMs: 600_000 } });
    const breaks = 14;
    for (let nth = 1; nth <= breaks; nth += 1) {
      await eventually(() => assert.deepEqual([states.at(-1), states.length], ['up', 2 * nth - 1]));
      exchange.cut();
    }
  });

  it('receives a message with a field that has no value', async (context) => {
    const { exchange, record, states, up } = await begin(context);
    await up();
    exchange.raw(textMessage(exchange, 'B', `148=${separator}${tags.Text}=one${separator}`));
    exchange.send('B', [tags.Text, 'two']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one', 'two']));
    assert.deepEqual(states, ['up']);
  });

  it('rejects a message whose fields cannot be read, reports it, and goes on', async (context) => {
    const { exchange, record, states, troubles, up } = await begin(context);
    await up();
    const number = exchange.nextOut;
    exchange.raw(textMessage(exchange, 'B', `${tags.Text}=one${separator}abc=1${separator}`));
    exchange.send('B', [tags.Text, 'two']);
    await eventually(() => assert.deepEqual(textsOf(record), ['two']));
    await eventually(() =>
      assert.deepEqual(
        ofType(exchange, messageTypes.Reject).map((reject) => reject.get(tags.RefSeqNum)),
        [String(number)],
      ),
    );
    assert.ok(troubles.includes('garbage'));
    assert.deepEqual(states, ['up']);
  });

  it('notices that it understands nothing any more, although bytes come', async (context) => {
    const { exchange, record, troubles, up } = await begin(context, { settings: { heartbeatMs: 200 } });
    await up();
    // A message whose length was changed on the way: all that follows would be a part of it.
    exchange.raw(`8=FIXT.1.1${separator}9=65000${separator}35=0${separator}`);
    const chatter = setInterval(() => exchange.send(messageTypes.Heartbeat), 20);
    context.after(() => clearInterval(chatter));
    await eventually(() => assert.ok(troubles.includes('silent')));
    clearInterval(chatter);
    exchange.send('B', [tags.Text, 'one']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one']));
  });

  it('asks for a reset again until a Logon of the numbering was answered', async (context) => {
    const { exchange, record, up } = await begin(context, { settings: { resetsByLogon: true } });
    exchange.nextIn = 77;
    exchange.nextOut = 55;
    let lost = 0;
    exchange.intercept = ({ type }) => {
      if (type !== messageTypes.Logon || lost >= 2) return false;
      lost += 1;
      exchange.cut();
      return true;
    };
    await up();
    const logons = ofType(exchange, messageTypes.Logon);
    assert.deepEqual(
      logons.map((logon) => [logon.number, logon.get(tags.ResetSeqNumFlag)]),
      [
        [1, 'Y'],
        [1, 'Y'],
        [1, 'Y'],
      ],
    );
    // A crash after this point must not lose what the exchange says, so it begins no numbering.
    assert.ok(record.nextIn > 1);
  });
});

describe('a FIX session with a peer that reads nothing', () => {
  it('refuses all orders once it has waited for one, and goes on when its peer reads again', async (context) => {
    const { exchange, states, up, send } = await begin(context, { settings: { heartbeatMs: 30_000 } });
    await up();
    exchange.freeze();
    const unwritten: string[] = [];
    let lastMs = 0;
    // Until the buffers of the kernel are full, orders are written.
    for (let at = 0; unwritten.length === 0; at += 1) {
      const began = performance.now();
      const ids = Array.from({ length: 500 }, (_, nth) => `o${at}.${nth}`);
      const outcomes = await Promise.all(ids.map((id) => send(id)));
      unwritten.push(...ids.filter((_, nth) => outcomes[nth] === 'unwritten'));
      lastMs = performance.now() - began;
    }
    assert.ok(unwritten.length > 5, `${unwritten.length} orders were refused`);
    assert.ok(lastMs < 5_000, `it took ${lastMs} ms to refuse them`);
    exchange.thaw();
    await eventually(async () => assert.equal(await send(`next${performance.now()}`), 'written'));
    await eventually(() => assert.ok([...exchange.arrivals.keys()].some((id) => id.startsWith('next'))));
    for (const id of unwritten) assert.equal(exchange.arrivals.has(id), false, `${id} arrived`);
    for (const times of exchange.arrivals.values()) assert.equal(times, 1);
    assert.deepEqual(states, ['up']);
  });

  it('ends when the other side asks for more answers than it reads', async (context) => {
    const { exchange, states, up } = await begin(context, { settings: { heartbeatMs: 30_000 } });
    await up();
    exchange.freeze();
    const id = 'x'.repeat(30_000);
    const asking = setInterval(() => {
      for (let at = 0; at < 20; at += 1) exchange.send(messageTypes.TestRequest, [tags.TestReqID, id]);
    }, 5);
    context.after(() => clearInterval(asking));
    await eventually(() => assert.ok(states.includes('down')));
    clearInterval(asking);
  });
});

describe('a FIX session, at its ends', { concurrency: 8 }, () => {
  it('writes no order behind its own Logout', async (context) => {
    const { exchange, session, record, troubles, up, send } = await begin(context);
    await up();
    record.latency = () => delay(50);
    exchange.intercept = ({ type }) => type === messageTypes.Logout;
    exchange.write(1, 'B', [tags.Text, 'again']);
    await eventually(() => assert.ok(troubles.includes('number_too_low')));
    const outcome = session.isUp ? await send('behind') : 'unrecorded';
    assert.equal(outcome, 'unrecorded');
    assert.equal(exchange.arrivals.has('behind'), false);
  });

  it('knows that orders may be on their way if it is asked for them again while it logs out', async (context) => {
    const { exchange, filled, record, states, up, send } = await begin(context);
    await up();
    let release: () => void = () => {};
    record.latency = () => new Promise<void>((done) => (release = done));
    const written = send('on its way');
    await eventually(() => assert.ok(record.orders.has('on its way')));
    // Both are read while the sender waits for its commit.
    exchange.send(messageTypes.ResendRequest, [tags.BeginSeqNo, '1'], [tags.EndSeqNo, '0']);
    exchange.send(messageTypes.Logout);
    await delay(50);
    record.latency = async () => {};
    release();
    assert.equal(await written, 'written');
    await eventually(() => assert.ok(states.includes('down')));
    assert.deepEqual(
      filled.map(([, , wasUp]) => wasUp),
      [true],
    );
  });

  it('says that it is down before the record is asked for anything', async (context) => {
    const { exchange, record, states, up } = await begin(context);
    await up();
    let release = () => {};
    record.latency = () =>
      new Promise<void>((resolve) => {
        release = resolve;
      });
    exchange.send(messageTypes.TestRequest, [tags.TestReqID, 'x']);
    try {
      await eventually(() => assert.equal(record.isCommitting, true));
      exchange.cut();
      await eventually(() => assert.deepEqual(states, ['up', 'down']));
    } finally {
      record.latency = async () => {};
      release();
    }
    await up();
  });

  it('goes on with its numbers in another process', async (context) => {
    const { exchange, record, stop, up, send } = await begin(context);
    await up();
    assert.equal(await send('first'), 'written');
    await eventually(() => assert.equal(exchange.arrivals.get('first'), 1));
    await stop();
    exchange.sendIntoNothing('B', [tags.Text, 'meanwhile']);
    const second = await begin(context, { record, exchange });
    await second.up();
    assert.equal(await second.send('second'), 'written');
    await eventually(() => assert.equal(exchange.arrivals.get('second'), 1));
    assert.deepEqual(textsOf(record), ['meanwhile']);
    assert.equal(ofType(exchange, messageTypes.SequenceReset).length, 0, 'no number was lost on the way');
    assert.deepEqual(second.filled, []);
  });

  it('passes over what a process gave a number and did not write', async (context) => {
    const record = new MemoryRecord();
    const exchange = await Exchange.start();
    record.startedAt = Date.now();
    record.nextOut = 6;
    const { filled, up, send } = await begin(context, { record, exchange });
    await up();
    assert.deepEqual(filled[0], [1, filled[0]?.[1], false]);
    assert.ok((filled[0]?.[1] ?? 0) >= 5);
    assert.equal(await send('next'), 'written');
    await eventually(() => assert.equal(exchange.arrivals.get('next'), 1));
  });

  it('logs out when its hours end, and begins the next day with number 1', async (context) => {
    let now = Date.parse('2026-11-23T14:59:59Z');
    const exchange = await Exchange.start();
    exchange.now = () => now;
    const { record, session, states, up, send, troubles } = await begin(context, {
      exchange,
      now: () => now,
      schedule: { ...always, days: parseDays('mon-fri'), start: '08:30', end: '16:00' },
    });
    await up();
    now = Date.parse('2026-11-23T15:00:01Z');
    await eventually(() => assert.deepEqual(states, ['up', 'down']));
    assert.equal(ofType(exchange, messageTypes.Logout).length, 1);
    await eventually(() => assert.equal(exchange.isConnected, false));
    assert.equal(session.isInHours, false);
    assert.equal(await send('at night'), 'unrecorded');
    const { connections } = exchange;
    exchange.nextIn = 1;
    exchange.nextOut = 1;
    now = Date.parse('2026-11-24T07:30:00Z');
    await eventually(() => assert.ok(session.isUp), 5_000);
    assert.equal(exchange.connections, connections + 1, 'nobody called at night');
    assert.equal(record.startedAt, now);
    const [, logon] = ofType(exchange, messageTypes.Logon);
    assert.equal(logon?.number, 1);
    assert.deepEqual(troubles, []);
  });

  it('begins a new numbering at the change of the day, where it has no pause', async (context) => {
    let now = Date.parse('2026-11-22T22:59:59.900Z');
    const exchange = await Exchange.start();
    exchange.now = () => now;
    const { record, states, up } = await begin(context, { exchange, now: () => now });
    await up();
    exchange.intercept = ({ type }) => {
      if (type === messageTypes.Logout) queueMicrotask(() => Object.assign(exchange, { nextIn: 1, nextOut: 1 }));
      return false;
    };
    now = Date.parse('2026-11-22T23:00:00Z');
    await eventually(() => assert.deepEqual(states, ['up', 'down', 'up']));
    assert.equal(record.startedAt, now);
    assert.deepEqual(
      ofType(exchange, messageTypes.Logon).map(({ number }) => number),
      [1, 1],
    );
  });

  it('follows a reset to a higher number, and refuses one to a lower', async (context) => {
    const { exchange, record, states, troubles, up } = await begin(context);
    await up();
    exchange.nextOut += 10;
    exchange.write(1, messageTypes.SequenceReset, [tags.GapFillFlag, 'N'], [tags.NewSeqNo, String(exchange.nextOut)]);
    exchange.send('B', [tags.Text, 'one']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one']));
    assert.deepEqual(
      troubles.filter((what) => what !== 'unsupported'),
      ['numbers_reset'],
    );
    exchange.write(exchange.nextOut, messageTypes.SequenceReset, [tags.NewSeqNo, '2']);
    exchange.send('B', [tags.Text, 'two']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one', 'two']));
    await eventually(() => assert.equal(ofType(exchange, messageTypes.Reject).length, 1));
    assert.deepEqual(states, ['up']);
  });

  for (const [what, change] of [
    ['another BeginString', (text: string) => text.replace('8=FIXT.1.1', '8=FIX.4.4')],
    ['another TargetCompID', (text: string) => text.replace('56=MARINA', '56=MARINE')],
    ['no MsgSeqNum', (text: string) => text.replace(/34=\d+/, '40=1')],
    ['a SendingTime of yesterday', (text: string) => text.replace(/52=\d{8}/, '52=20200102')],
    ['no SendingTime', (text: string) => text.replace(/52=[-:.0-9]+/, '40=1')],
  ] as const) {
    it(`logs out when a message has ${what}`, async (context) => {
      const { exchange, record, states, troubles, up } = await begin(context);
      await up();
      exchange.raw(withSum(change(textMessage(exchange, 'B', `58=one${separator}`, 0).toString('latin1'))));
      await eventually(() => assert.ok(troubles.includes('not_ours')));
      await eventually(() => assert.equal(ofType(exchange, messageTypes.Logout).length, 1));
      await eventually(() => assert.deepEqual(states, ['up', 'down', 'up']));
      assert.deepEqual(textsOf(record), []);
    });
  }

  it('answers a Logout, and logs on again', async (context) => {
    const { exchange, states, up } = await begin(context);
    await up();
    exchange.intercept = ({ type, number }) => {
      if (type !== messageTypes.Logout) return false;
      exchange.nextIn = number + 1;
      return true;
    };
    exchange.send(messageTypes.Logout, [tags.Text, 'maintenance']);
    await eventually(() => assert.equal(ofType(exchange, messageTypes.Logout).length, 1));
    await eventually(() => assert.deepEqual(states, ['up', 'down', 'up']));
  });

  it('is not up before it has received what it missed', async (context) => {
    const record = new MemoryRecord();
    record.startedAt = Date.now();
    const exchange = await Exchange.start();
    for (const text of ['one', 'two', 'three']) exchange.sendIntoNothing('B', [tags.Text, text]);
    let receivedAtUp: unknown;
    const { up, states } = await begin(context, {
      record,
      exchange,
      onUp: () => {
        receivedAtUp = textsOf(record);
      },
    });
    await up();
    assert.deepEqual(receivedAtUp, ['one', 'two', 'three']);
    assert.deepEqual(states, ['up']);
  });

  it('is not up by a sign of life that answers nothing', async (context) => {
    const record = new MemoryRecord();
    const exchange = await Exchange.start();
    exchange.intercept = ({ type }) => {
      if (type !== messageTypes.TestRequest) return false;
      exchange.nextIn += 1;
      return true;
    };
    const { session, states, up } = await begin(context, { record, exchange, settings: { heartbeatMs: 5_000 } });
    await eventually(() => assert.equal(ofType(exchange, messageTypes.TestRequest).length, 1));
    exchange.send(messageTypes.Heartbeat);
    exchange.send(messageTypes.Heartbeat, [tags.TestReqID, 'other']);
    exchange.send('B', [tags.Text, 'one']);
    await eventually(() => assert.deepEqual(textsOf(record), ['one']));
    assert.deepEqual([session.isUp, states], [false, []]);
    const [test] = ofType(exchange, messageTypes.TestRequest);
    exchange.send(messageTypes.Heartbeat, [tags.TestReqID, test?.get(tags.TestReqID) ?? '']);
    await up();
  });

  it('tests the line again when the answer to its first test was passed over with what was missing', async (context) => {
    const exchange = await Exchange.start();
    let tests = 0;
    exchange.intercept = ({ type }) => {
      if (type !== messageTypes.TestRequest) return false;
      tests += 1;
      if (tests === 1) exchange.sendIntoNothing('B', [tags.Text, 'one']);
      return false;
    };
    const { record, up } = await begin(context, { exchange, settings: { heartbeatMs: 30_000 } });
    await up();
    assert.deepEqual(textsOf(record), ['one']);
    assert.equal(tests, 2);
  });

  it('answers a ResendRequest that comes behind a gap of its own', async (context) => {
    const { exchange, filled, record, states, up } = await begin(context);
    await up();
    exchange.sendIntoNothing('B', [tags.Text, 'one']);
    exchange.send(messageTypes.ResendRequest, [tags.BeginSeqNo, '1'], [tags.EndSeqNo, '0']);
    await eventually(() => assert.equal(filled.length, 1));
    await eventually(() => assert.deepEqual(textsOf(record), ['one']));
    assert.deepEqual(states, ['up']);
  });

  it('does not take a Logon whose number is too low', async (context) => {
    const record = new MemoryRecord();
    Object.assign(record, { startedAt: Date.now(), nextIn: 10 });
    const exchange = await Exchange.start();
    exchange.nextOut = 5;
    const { session, states, troubles } = await begin(context, { record, exchange });
    await eventually(() => assert.ok(troubles.includes('number_too_low')));
    await eventually(() => assert.match(textOfLogout(exchange), /too low, expecting 10 but received 5/));
    assert.deepEqual([session.isUp, states], [false, []]);
  });

  it('writes no password into its log', async (context) => {
    const { exchange, logged, troubles, up } = await begin(context);
    exchange.intercept = ({ type, number }) => {
      if (type !== messageTypes.Logon || troubles.includes('logon_refused')) return false;
      exchange.send(messageTypes.Logout, [tags.Text, 'wrong password']);
      exchange.nextIn = number + 1;
      return true;
    };
    await up();
    assert.ok(logged.length > 0);
    assert.ok(!logged.join('\n').includes('secret'));
  });
});

function textOfLogout(exchange: Exchange): string {
  return ofType(exchange, messageTypes.Logout)[0]?.get(tags.Text) ?? '';
}
