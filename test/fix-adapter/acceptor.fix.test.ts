/** The exchange that the FIX adapter's tests talk to behaves as an exchange, and misbehaves when a test says so. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { fieldsOf, RawClient } from '../support/fix/raw-client.ts';
import { type Acceptor, type AcceptorOptions, field, startAcceptor, whyNoAcceptor } from '../support/quickfix.ts';

const login = { username: 'marina', password: 'secret-word' };
const skip = await whyNoAcceptor();

describe('FIX acceptor', { skip: skip ?? false }, () => {
  const running: Acceptor[] = [];
  const clients: RawClient[] = [];

  after(async () => {
    for (const client of clients) client.close();
    await Promise.all(running.map((acceptor) => acceptor.kill()));
  });

  /** An exchange of a test's own, and a client that is logged on. */
  async function loggedOn(options: AcceptorOptions = login): Promise<{ acceptor: Acceptor; client: RawClient }> {
    const acceptor = await startAcceptor(options);
    running.push(acceptor);
    return { acceptor, client: await logOn(acceptor, options) };
  }

  async function logOn(acceptor: Acceptor, options: AcceptorOptions = login, nextOut = 1): Promise<RawClient> {
    const client = await RawClient.logOn(acceptor.port, options, nextOut);
    clients.push(client);
    return client;
  }

  async function connect(acceptor: Acceptor, options: AcceptorOptions = login, nextOut = 1): Promise<RawClient> {
    const client = await RawClient.connect(acceptor.port, options);
    client.nextOut = nextOut;
    clients.push(client);
    return client;
  }

  for (const version of ['FIXT.1.1', 'FIX.4.4'] as const) {
    test(`speaks ${version}: logon, an order that trades, logout`, async () => {
      const { acceptor, client } = await loggedOn({ version, ...login });
      client.sendOrder('A1', 'FILL');
      assert.equal(await client.nextReport(), '0 0 0 100');
      const trade = await client.next('8');
      assert.deepEqual(fieldsOf(trade, 8, 150, 39, 32, 31, 14, 151, 6, 11, 55, 54), [
        version,
        'F',
        '2',
        '100',
        '12.50',
        '100',
        '0',
        '12.5000',
        'A1',
        'FILL',
        '1',
      ]);
      client.send('5');
      await client.next('5');
      await client.closed();
      assert.equal((await acceptor.state()).isLoggedOn, false);
    });
  }

  test('a Logon with a wrong password is answered by a Logout', async () => {
    const { acceptor, client } = await loggedOn();
    client.close();
    await eventually(async () => assert.equal((await acceptor.state()).isConnected, false));
    const stranger = await connect(acceptor, { ...login, password: 'wrong' }, client.nextOut);
    stranger.sendLogon();
    assert.equal(field(await stranger.next('5'), 58), 'Rejected Logon Attempt: wrong username or password');
    await stranger.closed();
  });

  test('a message against the data dictionary is rejected', async () => {
    const { client } = await loggedOn();
    client.sendOrder('A1', 'ACME', [[54, 'X']]);
    const reject = await client.next('3');
    assert.deepEqual(fieldsOf(reject, 371, 373), ['54', '5']);
  });

  test('orders rest, trade in part, in parts, or are rejected, by their symbol', async () => {
    const { acceptor, client } = await loggedOn();
    const reportsOf = async (symbol: string, count: number) => {
      client.sendOrder(`of-${symbol}`, symbol);
      const reports: string[] = [];
      for (let i = 0; i < count; i++) reports.push(await client.nextReport());
      return reports;
    };
    assert.deepEqual(await reportsOf('ACME', 1), ['0 0 0 100']);
    assert.deepEqual(await reportsOf('PARTIAL', 2), ['0 0 0 100', 'F 1 50 50']);
    assert.deepEqual(await reportsOf('PARTS', 4), ['0 0 0 100', 'F 1 25 75', 'F 1 50 50', 'F 2 100 0']);
    assert.deepEqual(await reportsOf('LATE', 1), ['0 0 0 100']);
    for (const reason of [0, 1, 3, 4, 5, 6, 8, 11, 13, 15, 99]) {
      client.sendOrder(`rejected-${reason}`, `REJECT${reason}`);
      const report = await client.next('8');
      assert.deepEqual(fieldsOf(report, 150, 39, 103), ['8', '8', String(reason)]);
    }
    client.sendOrder('closed', 'CLOSED');
    assert.equal(field(await client.next('8'), 103), '2');
    const states = (await acceptor.orders())
      .slice(0, 3)
      .map(({ clOrdId, status, filled }) => [clOrdId, status, filled]);
    assert.deepEqual(states, [
      ['of-ACME', '0', 0],
      ['of-PARTIAL', '1', 50],
      ['of-PARTS', '2', 100],
    ]);
  });

  test('a silent order is in the book, an ignored one is not, and a second one with its ClOrdID is rejected', async () => {
    const { acceptor, client } = await loggedOn();
    client.sendOrder('silent', 'SILENT');
    client.sendOrder('ignored', 'IGNORE');
    client.sendStatusRequest('silent', 'S1', 'SILENT');
    assert.equal(await client.nextReport(), 'I 0 0 100');
    client.sendStatusRequest('ignored', 'S2', 'IGNORE');
    assert.equal(field(await client.next('8'), 39), '8');
    client.sendOrder('silent', 'ACME');
    assert.equal(field(await client.next('8'), 103), '6');
    assert.deepEqual(
      [...acceptor.receivedOrders()],
      [
        ['silent', 2],
        ['ignored', 1],
      ],
    );
  });

  test('IOC and FOK orders end with what they could not trade', async () => {
    const { acceptor, client } = await loggedOn();
    client.sendOrder('ioc', 'PARTIAL', [[59, 3]]);
    assert.deepEqual(
      [await client.nextReport(), await client.nextReport(), await client.nextReport()],
      ['0 0 0 100', 'F 1 50 50', 'C C 50 0'],
    );
    client.sendOrder('fok', 'PARTIAL', [[59, 4]]);
    assert.deepEqual([await client.nextReport(), await client.nextReport()], ['0 0 0 100', 'C C 0 0']);
    await acceptor.onOrder({ as: 'rest', unfilled: 'cancelled' });
    client.sendOrder('ioc-2', 'ACME', [[59, 3]]);
    assert.deepEqual([await client.nextReport(), await client.nextReport()], ['0 0 0 100', '4 4 0 0']);
    client.sendOrder('gtc', 'ACME', [[59, 1]]);
    assert.equal(await client.nextReport(), '0 0 0 100');
  });

  test('orders do what a test says, and the market closes', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.onOrder({ as: 'partial', symbol: 'ACME', quantity: 30, price: '12.25', afterMs: 20 });
    client.sendOrder('A1');
    assert.deepEqual([await client.nextReport(), await client.nextReport()], ['0 0 0 100', 'F 1 30 70']);
    await acceptor.closeMarket();
    client.sendOrder('A2');
    assert.equal(field(await client.next('8'), 103), '2');
    await acceptor.openMarket();
    await acceptor.forgetRules();
    client.sendOrder('A3');
    assert.equal(await client.nextReport(), '0 0 0 100');
  });

  test('a cancel is accepted, pending, refused, too late, or for an unknown order', async () => {
    const { acceptor, client } = await loggedOn();
    const cxlRejReason = async () => field(await client.next('9'), 102);
    for (const id of ['A1', 'A2', 'A3']) client.sendOrder(id);
    client.sendCancel('C1', 'A1');
    const cancelled = await eventually(() => {
      const report = client.received.find((message) => field(message, 150) === '4');
      assert.ok(report);
      return report;
    });
    assert.deepEqual(fieldsOf(cancelled, 39, 11, 41, 151), ['4', 'C1', 'A1', '0']);
    client.sendCancel('C2', 'A1');
    assert.equal(await cxlRejReason(), '0');
    client.sendCancel('C3', 'nobody');
    const unknown = await client.next('9');
    assert.deepEqual(fieldsOf(unknown, 102, 39, 37), ['1', '8', 'NONE']);
    await acceptor.onCancel({ as: 'reject', reason: 2 });
    client.sendCancel('C4', 'A2');
    assert.equal(await cxlRejReason(), '2');
    await acceptor.onCancel({ as: 'tooLate' });
    client.sendCancel('C5', 'A2');
    assert.equal(await cxlRejReason(), '0');
    await acceptor.onCancel({ as: 'pending' });
    client.sendCancel('C6', 'A2');
    assert.equal(await client.nextReport(), '6 6 0 100');
    await acceptor.fill('A2', { quantity: 40 });
    assert.equal(await client.nextReport(), 'F 6 40 60');
    await acceptor.cancel('A2');
    assert.equal(await client.nextReport(), '4 4 40 0');
    await acceptor.onCancel({ as: 'pendingThenCancel', afterMs: 20 });
    client.sendCancel('C7', 'A3');
    assert.deepEqual([await client.nextReport(), await client.nextReport()], ['6 6 0 100', '4 4 0 0']);
  });

  test('status requests are answered for known and unknown orders, and for all open ones', async () => {
    const { acceptor, client } = await loggedOn();
    client.send('AF', [
      [584, 'M0'],
      [585, 7],
    ]);
    const none = await client.next('8');
    assert.deepEqual(fieldsOf(none, 584, 911, 912, 150, 39), ['M0', '0', 'Y', 'I', '8']);
    client.sendOrder('A1');
    client.sendOrder('A2', 'PARTIAL');
    client.sendOrder('A3', 'FILL');
    client.sendStatusRequest('A2', 'S1', 'PARTIAL');
    const known = await eventually(() => {
      const report = client.received.find((message) => field(message, 790) === 'S1');
      assert.ok(report);
      return report;
    });
    assert.deepEqual(fieldsOf(known, 150, 39, 14, 151, 11), ['I', '1', '50', '50', 'A2']);
    client.sendStatusRequest('nobody', 'S2');
    const unknown = await eventually(() => {
      const report = client.received.find((message) => field(message, 790) === 'S2');
      assert.ok(report);
      return report;
    });
    assert.deepEqual(fieldsOf(unknown, 150, 39, 103, 11), ['I', '8', '5', 'nobody']);
    client.send('AF', [
      [584, 'M1'],
      [585, 7],
    ]);
    const answers = await eventually(() => {
      const reports = client.received.filter((message) => field(message, 584) === 'M1');
      assert.equal(reports.length, 2);
      return reports;
    });
    assert.deepEqual(
      answers.map((report) => fieldsOf(report, 11, 911, 912)),
      [
        ['A1', '2', undefined],
        ['A2', '2', 'Y'],
      ],
    );
    await acceptor.onStatusRequest({ as: 'unknown' });
    client.sendStatusRequest('A1', 'S3');
    await eventually(() =>
      assert.ok(client.received.some((each) => field(each, 790) === 'S3' && field(each, 103) === '5')),
    );
  });

  test('a test fills, restates, corrects and ends orders', async () => {
    const { acceptor, client } = await loggedOn();
    for (const id of ['A1', 'A2', 'A3', 'A4']) client.sendOrder(id);
    for (let i = 0; i < 4; i++) await client.nextReport();
    const trade = await acceptor.fill('A1', { quantity: 60, price: '12.40' });
    assert.equal(await client.nextReport(), 'F 1 60 40');
    const corrected = await acceptor.correctTrade('A1', { execId: trade, quantity: 50, price: '12.30' });
    const correction = await client.next('8');
    assert.deepEqual(fieldsOf(correction, 150, 19, 17, 32, 31, 14), ['G', trade, corrected, '50', '12.30', '50']);
    await acceptor.cancelTrade('A1', corrected);
    const bust = await client.next('8');
    assert.deepEqual(fieldsOf(bust, 150, 19, 39, 14, 151), ['H', corrected, '0', '0', '100']);
    await acceptor.restate('A1', { quantity: 80, reason: 5 });
    const restated = await client.next('8');
    assert.deepEqual(fieldsOf(restated, 150, 38, 378, 151), ['D', '80', '5', '80']);
    await acceptor.cancel('A2', 'by the exchange');
    assert.equal(await client.nextReport(), '4 4 0 0');
    await acceptor.fill('A2', { quantity: 10 });
    assert.equal(await client.nextReport(), 'F 4 10 0');
    await acceptor.expire('A3');
    assert.equal(await client.nextReport(), 'C C 0 0');
    await acceptor.doneForDay('A4');
    assert.equal(await client.nextReport(), '3 3 0 0');
    await acceptor.reportUnknown();
    assert.equal(field(await client.next('8'), 11), 'NOBODYS-ORDER');
    await assert.rejects(acceptor.fill('nobody'), { message: 'there is no order nobody' });
  });

  test('a report comes again with its ExecID, with PossResend, or with PossDup and its old number', async () => {
    const { acceptor, client } = await loggedOn();
    client.sendOrder('A1', 'FILL');
    await client.nextReport();
    const trade = await client.next('8');
    const execId = field(trade, 17) as string;
    for (const [as, flag] of [
      ['again', undefined],
      ['possResend', 97],
      ['possDup', 43],
    ] as const) {
      await acceptor.repeat(execId, as);
      const repeated = await client.next('8');
      assert.equal(field(repeated, 17), execId);
      assert.equal(field(repeated, 34) === field(trade, 34), as === 'possDup');
      if (flag !== undefined) assert.equal(field(repeated, flag), 'Y');
    }
  });

  test('a gap in its numbers is filled when the client asks', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.skipOutgoing(3);
    client.sendOrder('A1');
    assert.equal(field(await client.next('8'), 34), '5');
    client.send('2', [
      [7, 2],
      [16, 0],
    ]);
    const fill = await client.next('4');
    assert.deepEqual(fieldsOf(fill, 34, 123, 36, 43), ['2', 'Y', '5', 'Y']);
    const again = await client.next('8');
    assert.deepEqual(fieldsOf(again, 34, 43, 11), ['5', 'Y', 'A1']);
  });

  test('it asks again when it expects a lower number, and logs out when it expects a higher one', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.expectIncoming(-1);
    client.sendOrder('A1');
    assert.equal(field(await client.next('2'), 7), '1');
    client.send(
      '4',
      [
        [43, 'Y'],
        [122, '20200101-00:00:00'],
        [123, 'Y'],
        [36, client.nextOut],
      ],
      1,
    );
    client.sendOrder('A2');
    assert.equal(field(await client.next('8'), 11), 'A2');
    await acceptor.expectIncoming(5);
    client.sendOrder('A3');
    assert.match(field(await client.next('5'), 58) ?? '', /^MsgSeqNum too low, expecting 9 but received 4$/);
    await client.closed();
  });

  test('a connection that breaks before the order is taken leaves no order', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.onNext({ type: 'D', action: 'disconnectBefore' });
    client.sendOrder('A1');
    await client.closed();
    assert.deepEqual(await acceptor.orders(), []);
    assert.equal(acceptor.receivedOrders().get('A1'), 1);
    const again = await logOn(acceptor, login, client.nextOut);
    // It never took number 2.
    assert.equal(field(await again.next('2'), 7), '2');
  });

  test('orders that were on their way when the connection broke are in the log', async () => {
    const { acceptor, client } = await loggedOn();
    client.holdsOpen = true;
    await acceptor.disconnect();
    await eventually(() => assert.ok(client.isEnded));
    client.sendOrder('A1');
    client.close();
    await eventually(() => assert.equal(acceptor.receivedOrders().get('A1'), 1));
    assert.deepEqual([acceptor.messages().at(-1)?.outcome, await acceptor.orders()], ['discarded', []]);
  });

  test('a connection that breaks after the order is taken has its answer in the store', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.onNext({ type: 'D', action: 'disconnectAfter' });
    client.sendOrder('A1', 'FILL');
    await client.closed();
    assert.equal(client.received.length, 1);
    assert.equal((await acceptor.orders())[0]?.status, '2');
    const again = await logOn(acceptor, login, client.nextOut);
    assert.equal(field(again.received[0] as string, 34), '4');
    again.send('2', [
      [7, 2],
      [16, 0],
    ]);
    assert.deepEqual([await again.nextReport(), await again.nextReport()], ['0 0 0 100', 'F 2 100 0']);
  });

  test('a test refuses messages, one at a time', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.onNext({ type: 'D', action: 'businessReject', reason: 4, text: 'no' });
    client.sendOrder('A1');
    const refused = await client.next('j');
    assert.deepEqual(fieldsOf(refused, 45, 372, 380, 379, 58), ['2', 'D', '4', 'A1', 'no']);
    await acceptor.onNext({ type: 'D', action: 'sessionReject', tag: 38 });
    client.sendOrder('A2');
    const rejected = await client.next('3');
    assert.deepEqual(fieldsOf(rejected, 45, 371, 372), ['3', '38', 'D']);
    await acceptor.onNext({ type: 'D', action: 'ignore', count: 2 });
    for (const id of ['A3', 'A4', 'A5']) client.sendOrder(id);
    assert.equal(field(await client.next('8'), 11), 'A5');
  });

  test('a frozen exchange answers when it thaws, and has not taken what it had not read', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.freeze();
    client.sendOrder('A1');
    assert.equal((await acceptor.state()).isFrozen, true);
    assert.deepEqual(await acceptor.orders(), []);
    await acceptor.thaw();
    assert.equal(await client.nextReport(), '0 0 0 100');
    await acceptor.onNext({ type: 'D', action: 'freeze' });
    client.sendOrder('A2');
    await eventually(async () => assert.equal((await acceptor.state()).isFrozen, true));
    await acceptor.disconnect();
    await client.closed();
    assert.equal((await acceptor.orders()).length, 1);
    assert.equal(acceptor.receivedOrders().get('A2'), 1);
    await acceptor.thaw();
    const again = await logOn(acceptor, login, client.nextOut);
    assert.equal(field(await again.next('2'), 7), '3');
  });

  test('logons are refused, unanswered, or answered with further fields', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.logout('maintenance');
    assert.equal(field(await client.next('5'), 58), 'maintenance');
    client.send('5');
    await client.closed();
    await acceptor.onLogon({ as: 'logout', text: 'not today' });
    const refused = await connect(acceptor, login, client.nextOut);
    refused.sendLogon();
    assert.equal(field(await refused.next('5'), 58), 'Rejected Logon Attempt: not today');
    await refused.closed();
    await acceptor.onLogon({ as: 'disconnect' });
    const dropped = await connect(acceptor, login, client.nextOut);
    dropped.sendLogon();
    await dropped.closed();
    assert.deepEqual(dropped.received, []);
    await acceptor.onLogon({ as: 'silent' });
    const waiting = await connect(acceptor, login, client.nextOut);
    waiting.sendLogon();
    await eventually(() => assert.ok(acceptor.events().includes('this Logon is not answered')));
    assert.deepEqual([waiting.received, waiting.isClosed], [[], false]);
    waiting.close();
    await acceptor.onLogon({ as: 'accept' });
    await acceptor.onLogonAnswer('141=Y');
    const taken = await logOn(acceptor, login, client.nextOut);
    assert.deepEqual(fieldsOf(taken.received[0] as string, 141, 34), ['Y', '1']);
  });

  test('it sends any message and any bytes, breaks the connection, and begins its numbers again', async () => {
    const { acceptor, client } = await loggedOn();
    await acceptor.send('1', '112=are you there');
    assert.equal(field(await client.next('1'), 112), 'are you there');
    await acceptor.sendBytes('8=FIXT.1.1\u00019=5\u0001\u00ff\u0000"');
    await eventually(() => assert.ok(client.bytes.endsWith('9=5\u0001\u00ff\u0000"')));
    const second = await connect(acceptor, login, client.nextOut);
    second.sendLogon();
    await second.closed();
    assert.deepEqual(second.received, []);
    client.sendOrder('A1');
    assert.equal(await client.nextReport(), '0 0 0 100');
    await acceptor.disconnect();
    await client.closed();
    const state = await acceptor.resetNumbers();
    assert.deepEqual([state.nextIn, state.nextOut, state.connections], [1, 1, 2]);
    await logOn(acceptor);
  });

  test('its orders, numbers and log survive its crash', async () => {
    const { acceptor, client } = await loggedOn();
    client.sendOrder('A1', 'PARTIAL');
    await client.nextReport();
    const first = field(await client.next('8'), 17);
    const { port } = acceptor;
    const before = await acceptor.orders();
    await acceptor.kill();
    await client.closed();
    await acceptor.start();
    assert.equal(acceptor.port, port);
    assert.deepEqual(await acceptor.orders(), before);
    const again = await logOn(acceptor, login, client.nextOut);
    assert.equal(field(again.received[0] as string, 34), '4');
    const second = await acceptor.fill('A1');
    assert.equal(await again.nextReport(), 'F 2 100 0');
    assert.notEqual(second, first);
    assert.equal(acceptor.receivedOrders().get('A1'), 1);
    const [logon] = acceptor.messages();
    assert.equal(logon?.direction, 'in');
    assert.match(logon?.at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });
});
