import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';
import { eventually } from '../../support/eventually.ts';
import type { Exchange } from '../../support/fix/exchange.ts';
import { begin, ofType } from '../../support/fix/session.ts';

describe('a FIX session', { concurrency: 8 }, () => {
  it('logs on with its credentials, and is up once the other side has nothing older to send', async (context) => {
    const { exchange, up } = await begin(context);
    await up();
    const [logon] = ofType(exchange, messageTypes.Logon);
    assert.deepEqual(
      [tags.EncryptMethod, tags.HeartBtInt, tags.Username, tags.Password, tags.DefaultApplVerID].map((tag) =>
        logon?.get(tag),
      ),
      ['0', '1', 'marina', 'secret', '9'],
    );
  });

  it('a session that is refused tries again, and says so', async (context) => {
    const { exchange, troubles, up } = await begin(context);
    let refused = 0;
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.Logon || refused >= 2) return false;
      refused += 1;
      exchange.send(messageTypes.Logout, [tags.Text, 'unknown user']);
      exchange.nextIn = message.number + 1;
      return true;
    };
    await up();
    assert.equal(troubles.filter((what) => what === 'logon_refused').length, 2);
  });

  it('a session whose Logon is not answered gives up the connection', async (context) => {
    const { exchange, up } = await begin(context);
    exchange.answersLogon = false;
    await eventually(() => assert.ok(exchange.connections >= 2));
    exchange.answersLogon = true;
    await up();
  });

  it('does not take part in a reset that it did not ask for', async (context) => {
    const { exchange, troubles, session } = await begin(context);
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.Logon) return false;
      exchange.write(
        1,
        messageTypes.Logon,
        [tags.EncryptMethod, '0'],
        [tags.HeartBtInt, '1'],
        [tags.ResetSeqNumFlag, 'Y'],
      );
      return true;
    };
    await eventually(() => assert.ok(troubles.includes('reset_not_asked_for')));
    assert.equal(session.isUp, false);
  });

  it('asks for a reset with the first Logon of a numbering, where it is told to', async (context) => {
    const { exchange, up } = await begin(context, { settings: { resetsByLogon: true } });
    exchange.nextIn = 77;
    exchange.nextOut = 55;
    await up();
    exchange.cut();
    await eventually(() => assert.equal(ofType(exchange, messageTypes.Logon).length, 2));
    await up();
    assert.deepEqual(
      ofType(exchange, messageTypes.Logon).map((logon) => logon.get(tags.ResetSeqNumFlag)),
      ['Y', undefined],
    );
  });

  it('sends heartbeats when it is quiet, and answers a test', async (context) => {
    const { exchange, up } = await begin(context, { settings: { heartbeatMs: 200 } });
    await up();
    exchange.send(messageTypes.TestRequest, [tags.TestReqID, 'hello']);
    await eventually(() => {
      const beats = ofType(exchange, messageTypes.Heartbeat);
      assert.ok(beats.some((beat) => beat.get(tags.TestReqID) === 'hello'));
      assert.ok(beats.filter((beat) => beat.get(tags.TestReqID) === undefined).length >= 2);
    });
  });

  it('tests a silent other side, and gives up the connection', async (context) => {
    const { exchange, up, troubles } = await begin(context, { settings: { heartbeatMs: 200 } });
    await up();
    exchange.intercept = () => true;
    await eventually(() => assert.ok(troubles.includes('silent')));
    assert.ok(ofType(exchange, messageTypes.TestRequest).some((test) => test.get(tags.TestReqID)?.startsWith('quiet')));
    exchange.intercept = () => false;
    await up();
  });

  it('asks once for what is missing, and receives all of it in order', async (context) => {
    const { exchange, record, up, troubles } = await begin(context);
    await up();
    exchange.sendIntoNothing('B', [58, 'one']);
    exchange.sendIntoNothing('B', [58, 'two']);
    exchange.send('B', [58, 'three']);
    exchange.send('B', [58, 'four']);
    await eventually(() =>
      assert.deepEqual(
        record.applied.map((one) => one.get(58)),
        ['one', 'two', 'three', 'four'],
      ),
    );
    assert.equal(ofType(exchange, messageTypes.ResendRequest).length, 1);
    assert.ok(troubles.includes('number_too_high'));
  });

  it('gives up a connection over which the missing does not come, and receives it over the next', async (context) => {
    const { exchange, record, up } = await begin(context);
    await up();
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.ResendRequest) return false;
      exchange.nextIn += 1;
      return exchange.connections === 1;
    };
    exchange.sendIntoNothing('B', [58, 'one']);
    exchange.send('B', [58, 'two']);
    await eventually(() => assert.ok(exchange.connections >= 2));
    exchange.intercept = () => false;
    await eventually(() =>
      assert.deepEqual(
        record.applied.map((one) => one.get(58)),
        ['one', 'two'],
      ),
    );
  });

  it('receives again what it could not store', async (context) => {
    const { exchange, record, up } = await begin(context);
    await up();
    record.failsAt = 'received';
    exchange.send('B', [58, 'one']);
    exchange.send('B', [58, 'two']);
    await eventually(() =>
      assert.deepEqual(
        record.applied.map((one) => one.get(58)),
        ['one', 'two'],
      ),
    );
  });

  it('ends with a Logout when a number comes again that is no repetition', async (context) => {
    const { exchange, troubles, up } = await begin(context);
    await up();
    exchange.write(1, 'B', [58, 'again']);
    await eventually(() => assert.ok(troubles.includes('number_too_low')));
    await eventually(() => {
      const [logout] = ofType(exchange, messageTypes.Logout);
      assert.match(logout?.get(tags.Text) ?? '', /too low, expecting \d+ but received 1/);
    });
  });

  it('passes over a repetition of what it has received', async (context) => {
    const { exchange, record, states, up } = await begin(context);
    await up();
    exchange.send('B', [58, 'one']);
    await eventually(() => assert.equal(record.applied.length, 1));
    exchange.write(exchange.nextOut - 1, 'B', [tags.PossDupFlag, 'Y'], [58, 'one']);
    exchange.send('B', [58, 'two']);
    await eventually(() =>
      assert.deepEqual(
        record.applied.map((one) => one.get(58)),
        ['one', 'two'],
      ),
    );
    assert.deepEqual(states, ['up']);
  });

  it('goes on behind bytes that are no message', async (context) => {
    const { exchange, record, troubles, up } = await begin(context);
    await up();
    exchange.raw('8=FIXT.1.1\x019=5\x01garbage');
    exchange.send('B', [58, 'one']);
    await eventually(() =>
      assert.deepEqual(
        record.applied.map((one) => one.get(58)),
        ['one'],
      ),
    );
    assert.ok(troubles.includes('garbage'));
  });

  it('ends when somebody else speaks, or a clock is wrong', async (context) => {
    const { exchange, troubles, up } = await begin(context);
    await up();
    exchange.raw(wrongMessage(exchange, [tags.SenderCompID, 'SOMEBODY']));
    await eventually(() => assert.equal(troubles.filter((what) => what === 'not_ours').length, 1));
    exchange.nextOut = 1;
    await delay(100);
    assert.ok(ofType(exchange, messageTypes.Reject).length >= 1);
  });

  it('answers a ResendRequest for everything with one gap fill, and sends no order twice', async (context) => {
    const { exchange, filled, up, send } = await begin(context);
    await up();
    for (const id of ['a', 'b', 'c']) assert.equal(await send(id), 'written');
    await eventually(() => assert.equal(exchange.arrivals.size, 3));
    exchange.send(messageTypes.ResendRequest, [tags.BeginSeqNo, '1'], [tags.EndSeqNo, '0']);
    await eventually(() => assert.equal(filled.length, 1));
    await send('d');
    await eventually(() => assert.equal(exchange.arrivals.size, 4));
    const fills = ofType(exchange, messageTypes.SequenceReset);
    assert.equal(fills.length, 1);
    assert.equal(fills[0]?.get(tags.GapFillFlag), 'Y');
    assert.equal(fills[0]?.isPossDup, true);
    assert.deepEqual([...exchange.arrivals.values()], [1, 1, 1, 1]);
  });

  it('never writes an order whose time has run out while it was stored, and leaves no hole in the numbers', async (context) => {
    const { exchange, record, up, send } = await begin(context);
    await up();
    record.latency = () => delay(150);
    assert.equal(await send('late', Date.now() + 50), 'unwritten');
    record.latency = async () => {};
    assert.equal(await send('next'), 'written');
    await eventually(() => assert.equal(exchange.arrivals.get('next'), 1));
    assert.equal(exchange.arrivals.has('late'), false);
    assert.equal(record.orders.get('late')?.isUnwritten, true);
    assert.equal(ofType(exchange, messageTypes.ResendRequest).length, 0);
  });

  it('proves that an order was not written when the connection ended while it was stored', async (context) => {
    const { exchange, record, up, send } = await begin(context);
    await up();
    record.latency = async () => {
      if (!record.orders.has('lost')) return;
      record.latency = async () => {};
      exchange.cut();
      await delay(100);
    };
    assert.equal(await send('lost'), 'unwritten');
    await up();
    assert.equal(await send('next'), 'written');
    await eventually(() => assert.equal(exchange.arrivals.get('next'), 1));
    assert.equal(exchange.arrivals.has('lost'), false);
  });

  it('does not know of an order whose commit had no answer, and does not write it', async (context) => {
    const { exchange, record, up, send } = await begin(context);
    await up();
    record.failsAt = 'sending';
    assert.equal(await send('doubtful'), 'unknown');
    await eventually(() => assert.equal(exchange.connections, 2));
    await up();
    assert.equal(await send('next'), 'written');
    await eventually(() => assert.equal(exchange.arrivals.get('next'), 1));
    assert.equal(exchange.arrivals.has('doubtful'), false);
  });

  it('logs out when it is stopped, in bounded time, also if nobody answers', async (context) => {
    const { exchange, up, stop } = await begin(context);
    await up();
    exchange.intercept = () => true;
    const began = performance.now();
    await stop();
    assert.ok(performance.now() - began < 3_000);
    assert.equal(ofType(exchange, messageTypes.Logout).length, 1);
  });

  it('refuses at once what it is given while it is down', async (context) => {
    const { exchange, send } = await begin(context);
    exchange.answersLogon = false;
    assert.equal(await send('early'), 'unrecorded');
  });

  it('delivers each order at most once, and never one that it settled as not written, whatever breaks', async (context) => {
    const step = fc.constantFrom(
      'order',
      'order',
      'order',
      'cut',
      'ask again',
      'record fails',
      'gap',
      'late order',
      'many orders',
      'garbage',
      'again',
      'stop reading',
      'log out',
      'start again',
      'pause',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        let run = await begin(context);
        const { exchange, record } = run;
        const send = (id: string, notAfterMs?: number) => run.send(id, notAfterMs);
        const outcomes = new Map<string, Promise<string>>();
        await run.up();
        for (const [at, what] of steps.entries()) {
          if (what === 'order') outcomes.set(`o${at}`, send(`o${at}`));
          if (what === 'late order') outcomes.set(`o${at}`, send(`o${at}`, Date.now()));
          if (what === 'many orders') {
            for (let nth = 0; nth < 20; nth += 1) outcomes.set(`o${at}.${nth}`, send(`o${at}.${nth}`));
          }
          if (what === 'cut') exchange.cut();
          if (what === 'garbage') exchange.raw('8=FIXT.1.1\x019=12\x0135=0\x0134=5\x0110=000\x01');
          if (what === 'again') exchange.write(2, 'B', [tags.PossDupFlag, 'Y'], [tags.Text, 'again']);
          if (what === 'start again') {
            exchange.thaw();
            await run.stop();
            run = await begin(context, { record, exchange });
          }
          if (what === 'log out') exchange.send(messageTypes.Logout);
          if (what === 'stop reading') exchange.freeze();
          else exchange.thaw();
          if (what === 'record fails') record.failsAt = at % 2 === 0 ? 'sending' : 'received';
          if (what === 'gap') exchange.sendIntoNothing('B', [58, `lost ${at}`]);
          if (what === 'ask again')
            exchange.send(messageTypes.ResendRequest, [tags.BeginSeqNo, '1'], [tags.EndSeqNo, '0']);
          await delay(what === 'pause' ? 30 : at % 3);
        }
        exchange.thaw();
        exchange.send('B', [58, 'end']);
        await eventually(() => assert.ok(record.applied.some((one) => one.get(58) === 'end')));
        await run.up();
        for (const [id, outcome] of outcomes) {
          const times = exchange.arrivals.get(id) ?? 0;
          assert.ok(times <= 1, `${id} arrived ${times} times`);
          if ((await outcome) !== 'written') assert.equal(times, 0, `${id} arrived although it was not written`);
        }
        // All that the other side sent was received, once and in its order.
        const received = record.applied.filter((one) => one.type === 'B').map((one) => one.get(58));
        const lost = steps.flatMap((what, at) => (what === 'gap' ? [`lost ${at}`] : []));
        assert.deepEqual(received, [...lost, 'end']);
        await run.stop();
      }),
      { numRuns: 25 },
    );
  });
});

function wrongMessage(exchange: Exchange, [tag, value]: readonly [number, string]): string {
  const fields = [
    [35, 'B'],
    [49, 'EXCHANGE'],
    [56, 'MARINA'],
    [34, String(exchange.nextOut)],
    [52, utcTimestamp(Date.now())],
    [58, 'x'],
  ].map(([each, text]) => `${each}=${each === tag ? value : text}\x01`);
  const body = fields.join('');
  const start = `8=FIXT.1.1\x019=${body.length}\x01${body}`;
  const sum = [...Buffer.from(start)].reduce((all, byte) => all + byte, 0) % 256;
  return `${start}10=${String(sum).padStart(3, '0')}\x01`;
}
