import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { checkSum } from '../../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { eventually } from '../../support/eventually.ts';
import { createFixDatabase, startAdapterProcess } from '../../support/fix/adapter.ts';
import { Exchange } from '../../support/fix/exchange.ts';
import { begin, MemoryRecord, ofType, textMessage, textsOf } from '../../support/fix/session.ts';

describe('an adapter that is stopped', { concurrency: 2 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    for (const answers of [true, false]) {
      it(`an adapter stopped by ${signal} writes a Logout, ${answers ? 'which is answered' : 'also if nobody answers'}`, async (context) => {
        const database = await createFixDatabase();
        const exchange = await Exchange.start();
        context.after(async () => {
          await exchange.close();
          await database.drop();
        });
        const { kept, active } = await startAdapterProcess({
          MARINA_FIX_DATABASE_URL: database.url,
          MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
        });
        const { orders } = await active();
        orders.close();
        await eventually(() => assert.ok(ofType(exchange, messageTypes.TestRequest).length > 0), 20_000);
        if (!answers) exchange.intercept = ({ type }) => type === messageTypes.Logout;
        process.kill(kept.pid, signal);
        await eventually(() => assert.equal(ofType(exchange, messageTypes.Logout).length, 1), 5_000);
        await eventually(() => assert.equal(exchange.isConnected, false), 10_000);
        assert.equal(ofType(exchange, messageTypes.Logout)[0]?.number, exchange.received.length, 'no number was lost');
      });
    }
  }
});

describe("a FIX session's manners", { concurrency: 8 }, () => {
  it('include no Logout of a process that has lost its lease', async (context) => {
    let isOurs = true;
    const { exchange, up, stop } = await begin(context, { mayWrite: () => isOurs });
    await up();
    isOurs = false;
    await stop();
    assert.equal(ofType(exchange, messageTypes.Logout).length, 0);
  });

  it('echo every byte of a TestReqID', async (context) => {
    const { exchange, up } = await begin(context);
    await up();
    const id = 'caf\xe9 \xff\x02=|';
    exchange.raw(textMessage(exchange, messageTypes.TestRequest, `${tags.TestReqID}=${id}\x01`));
    await eventually(() =>
      assert.ok(ofType(exchange, messageTypes.Heartbeat).some((beat) => beat.get(tags.TestReqID) === id)),
    );
  });

  it('read lengths and numbers with zeros before them', async (context) => {
    const { exchange, record, states, up } = await begin(context);
    await up();
    const number = String(exchange.nextOut).padStart(20, '0');
    const plain = textMessage(exchange, 'B', `${tags.Text}=one\x01`).toString('latin1');
    const body = plain.slice(plain.indexOf('35='), -7).replace(/34=\d+/, `34=${number}`);
    const start = `8=FIXT.1.1\x019=${String(Buffer.byteLength(body, 'latin1')).padStart(7, '0')}\x01${body}`;
    exchange.raw(`${start}10=${checkSum(Buffer.from(start, 'latin1'))}\x01`);
    await eventually(() => assert.deepEqual(textsOf(record), ['one']));
    assert.deepEqual(states, ['up']);
  });

  it('refuse a message of 70 kB once, note it, and go on', async (context) => {
    const { exchange, record, states, missed, up } = await begin(context);
    await up();
    const number = exchange.nextOut;
    exchange.send('8', [tags.ClOrdID, 'ord_a'], [tags.Text, 'x'.repeat(70_000)]);
    exchange.send('B', [tags.Text, 'next']);
    await eventually(() => assert.deepEqual(textsOf(record), ['next']));
    const [long] = record.applied;
    assert.deepEqual(
      [long?.number, long?.isWhole, long?.get(tags.ClOrdID), long?.bytes.length],
      [number, false, 'ord_a', 4_096],
    );
    await eventually(() => assert.equal(ofType(exchange, messageTypes.Reject).length, 1));
    await eventually(() => assert.equal(missed.length, 1));
    assert.deepEqual([states, ofType(exchange, messageTypes.ResendRequest).length], [['up'], 0]);
  });

  it('end the connection when a length is one that no message has, and ring', async (context) => {
    const { exchange, states, troubles, up } = await begin(context);
    await up();
    exchange.raw('8=FIXT.1.1\x019=99999999\x0135=8\x0149=EXCHANGE\x0156=MARINA\x0134=9\x01');
    await eventually(() => assert.ok(troubles.includes('too_long')));
    await eventually(() => assert.deepEqual(states, ['up', 'down', 'up']));
  });

  it('end the connection when a long message does not come to its end, and ring', async (context) => {
    const { exchange, troubles, up } = await begin(context, { settings: { heartbeatMs: 200 } });
    await up();
    exchange.raw('8=FIXT.1.1\x019=1000000\x0135=8\x01');
    await eventually(() => assert.ok(troubles.includes('too_long')));
    await up();
  });

  it('begin a numbering with each Logon where the exchange does, and count what was between as passed over', async (context) => {
    const { exchange, record, missed, states, up, send } = await begin(context, { settings: { resetsOnLogon: true } });
    await up();
    const first = record.startedAt;
    assert.equal(await send('one'), 'written');
    exchange.cut();
    await eventually(() => assert.deepEqual(states, ['up', 'down', 'up']));
    assert.ok(record.startedAt > first);
    const logons = ofType(exchange, messageTypes.Logon);
    assert.deepEqual(
      logons.map((logon) => [logon.number, logon.get(tags.ResetSeqNumFlag)]),
      [
        [1, 'Y'],
        [1, 'Y'],
      ],
    );
    assert.equal(missed.length, 2);
    assert.equal(record.passedOver.length, 2);
  });

  it('say what is open when the first TestRequest is never answered, and test again', async (context) => {
    const { exchange, logged, session, troubles } = await begin(context, { settings: { heartbeatMs: 60_000 } });
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.TestRequest) return false;
      exchange.nextIn += 1;
      return true;
    };
    await eventually(() => assert.ok(troubles.includes('not_up')));
    assert.deepEqual([session.status().state, session.isUp], ['testing', false]);
    assert.match(logged.join('\n'), /the session does not come up/);
    assert.match(logged.join('\n'), /the TestRequest after the Logon is not answered/);
    await eventually(() => assert.ok(ofType(exchange, messageTypes.TestRequest).length >= 2));
    exchange.intercept = () => false;
    await eventually(() => assert.equal(session.status().state, 'up'));
  });

  it('stop after so many refused Logons, ring, and go on when an operator says so', async (context) => {
    const { exchange, session, troubles, up } = await begin(context);
    let refuses = true;
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.Logon || !refuses) return false;
      exchange.send(messageTypes.Logout, [tags.Text, 'wrong password']);
      exchange.nextIn = message.number + 1;
      return true;
    };
    await eventually(() => assert.equal(session.status().state, 'stopped'));
    await eventually(() => assert.ok(troubles.filter((what) => what === 'logon_stopped').length >= 2, 'it rings on'));
    assert.equal(ofType(exchange, messageTypes.Logon).length, 3);
    assert.match(session.status().reason, /wrong password/);
    refuses = false;
    session.resume();
    await up();
  });

  it('take a Logout behind the Logon for a refusal until the session is up, and show at once that no other Logon is sent', async (context) => {
    const settings = { logonTries: 1, refusedWaitMs: 600_000 };
    const { exchange, session, troubles, up } = await begin(context, { settings });
    let refuses = true;
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.TestRequest || !refuses) return false;
      exchange.nextIn = message.number + 1;
      exchange.send(messageTypes.Logout, [tags.Text, 'the password has expired']);
      return true;
    };
    await eventually(() => assert.ok(troubles.includes('logon_stopped')));
    await eventually(() => assert.equal(session.status().state, 'stopped'));
    assert.match(session.status().reason, /no further Logon is sent: .*the password has expired/);
    assert.equal(session.status().logged, 'no further Logon is sent');
    assert.equal(ofType(exchange, messageTypes.Logon).length, 1);
    refuses = false;
    session.resume();
    await up();
    exchange.send(messageTypes.Logout);
    await eventually(() => assert.equal(ofType(exchange, messageTypes.Logon).length, 3));
    await up();
    assert.equal(troubles.filter((what) => what === 'logon_refused').length, 1);
  });

  it('take a Logout while messages are missing for no refusal, and log on again until they come', async (context) => {
    const record = new MemoryRecord();
    record.startedAt = Date.now();
    const exchange = await Exchange.start();
    exchange.sendIntoNothing('B', [tags.Text, 'missed']);
    let logsOut = true;
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.ResendRequest || !logsOut) return false;
      exchange.nextIn = message.number + 1;
      exchange.send(messageTypes.Logout, [tags.Text, 'not now']);
      return true;
    };
    const settings = { logonTries: 1, refusedWaitMs: 600_000 };
    const { session, troubles, up } = await begin(context, { record, exchange, settings });
    await eventually(() => assert.ok(ofType(exchange, messageTypes.Logon).length >= 3));
    assert.equal(session.status().refusals, 0);
    logsOut = false;
    await up();
    assert.deepEqual([textsOf(record), troubles.includes('logon_refused')], [['missed'], false]);
  });

  it('take a Logout behind a message of the application for no refusal, though the session is not up', async (context) => {
    const settings = { logonTries: 1, refusedWaitMs: 600_000 };
    const { exchange, record, session, troubles, up } = await begin(context, { settings });
    let logsOut = true;
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.TestRequest || !logsOut) return false;
      logsOut = false;
      exchange.nextIn = message.number + 1;
      exchange.send('B', [tags.Text, 'news']);
      exchange.send(messageTypes.Logout);
      return true;
    };
    await up();
    assert.equal(ofType(exchange, messageTypes.Logon).length, 2);
    assert.deepEqual([textsOf(record), session.status().refusals], [['news'], 0]);
    assert.ok(!troubles.includes('logon_refused'));
  });

  it('begin again with another password after refused Logons', async (context) => {
    let password = 'old';
    const { exchange, session, up } = await begin(context, { settings: { logonTries: 1, password: () => password } });
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.Logon || message.get(tags.Password) === 'new') return false;
      exchange.send(messageTypes.Logout, [tags.Text, 'expired']);
      exchange.nextIn = message.number + 1;
      return true;
    };
    await eventually(() => assert.equal(session.status().state, 'stopped'));
    password = 'new';
    await up();
  });

  it('ask for the rest when the other side resends only so many at once', async (context) => {
    const record = new MemoryRecord();
    record.startedAt = Date.now();
    const exchange = await Exchange.start();
    const texts = Array.from({ length: 20 }, (_, nth) => `n${nth}`);
    for (const text of texts) exchange.sendIntoNothing('B', [tags.Text, text]);
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.ResendRequest) return false;
      exchange.nextIn = message.number + 1;
      const from = Number(message.get(tags.BeginSeqNo));
      for (let number = from; number < Math.min(from + 6, exchange.nextOut); number += 1) {
        const text = texts[number - 1];
        if (text !== undefined) exchange.write(number, 'B', [tags.PossDupFlag, 'Y'], [tags.Text, text]);
        else {
          const next = [tags.NewSeqNo, String(number + 1)] as const;
          exchange.write(number, messageTypes.SequenceReset, [tags.PossDupFlag, 'Y'], [tags.GapFillFlag, 'Y'], next);
        }
      }
      return true;
    };
    const { up } = await begin(context, { record, exchange, settings: { gapTimeoutMs: 30_000 } });
    await up();
    assert.deepEqual(textsOf(record), texts);
  });

  it('ask for so many at once as a setting says', async (context) => {
    const record = new MemoryRecord();
    record.startedAt = Date.now();
    const exchange = await Exchange.start();
    for (let nth = 0; nth < 5; nth += 1) exchange.sendIntoNothing('B', [tags.Text, `n${nth}`]);
    const { up } = await begin(context, { record, exchange, settings: { resendChunk: 100 } });
    await up();
    const [request] = ofType(exchange, messageTypes.ResendRequest);
    assert.deepEqual([request?.get(tags.BeginSeqNo), request?.get(tags.EndSeqNo)], ['1', '6']);
  });

  it('say which message is expected next, and fill what the other side lacks without its request', async (context) => {
    const record = new MemoryRecord();
    Object.assign(record, { startedAt: Date.now(), nextOut: 6 });
    const exchange = await Exchange.start();
    exchange.intercept = (message) => {
      if (message.type !== messageTypes.Logon) return false;
      exchange.send(
        messageTypes.Logon,
        [tags.EncryptMethod, '0'],
        [tags.HeartBtInt, '1'],
        [tags.NextExpectedMsgSeqNum, '1'],
      );
      return true;
    };
    const { filled, up } = await begin(context, { record, exchange, settings: { sendsNextExpected: true } });
    await up();
    assert.equal(ofType(exchange, messageTypes.Logon)[0]?.get(tags.NextExpectedMsgSeqNum), '1');
    assert.deepEqual(filled, [[1, 6, false]]);
  });

  it('try the recovery site when the first address does not come up', async (context) => {
    const tried: string[] = [];
    const { session, up } = await begin(context, {
      addresses: ['down', 'recovery'],
      connect: async (exchange, address) => {
        tried.push(address);
        if (address === 'down') throw new Error('nobody listens');
        return connect({ host: '127.0.0.1', port: exchange.port });
      },
    });
    await up();
    assert.deepEqual(tried, ['down', 'recovery']);
    assert.equal(session.status().address, 'recovery');
  });

  it('say of what type a message of the session was that is rejected without it', async (context) => {
    const { exchange, logged, record, up } = await begin(context);
    await up();
    const [logon] = ofType(exchange, messageTypes.Logon);
    exchange.send(messageTypes.Reject, [tags.RefSeqNum, String(logon?.number)]);
    await eventually(() => assert.equal(record.applied[0]?.get(tags.RefMsgType), messageTypes.Logon));
    assert.match(logged.join('\n'), /the other side rejects a message of the session/);
  });
});
