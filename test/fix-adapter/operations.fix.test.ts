import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { credentials, type ServiceError, status } from '@grpc/grpc-js';
import { messageTypes, tags } from '../../src/fix-adapter/wire/tags.ts';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { newOperatorToken } from '../../src/kit/operator-tokens.ts';
import { makeAuthority } from '../../src/sandbox/certificates.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';
import { ofType } from '../support/fix/session.ts';
import { temporaryFolder } from '../support/folders.ts';
import type { Found } from '../support/operator.ts';
import { ReflectedClient } from '../support/reflected.ts';

const ada = newOperatorToken('ada', Date.now() + 86_400_000);
/** An answer in JSON with the names of fields that the code uses. */
function withCamelCase(value: Found): Found {
  if (Array.isArray(value)) return value.map(withCamelCase);
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value).map(([name, member]) => {
    return [name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), withCamelCase(member)];
  });
  return Object.fromEntries(members);
}

const past = newOperatorToken('past', Date.now() - 1_000);

describe("the FIX adapter's operators' port", () => {
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let database: Database;
  let exchange: Exchange;
  let variables: Record<string, string>;
  let fix: TestAdapter;
  let operator: ReflectedClient;
  const isUp = (adapter = fix) => eventually(() => assert.ok(adapter.adapter.isUp), 20_000);
  before(async () => {
    made = await createFixDatabase();
    database = new Database(await connect({ url: made.url, poolSize: 2 }), 'live', 2);
    exchange = await Exchange.start();
    variables = {
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_ADMIN_PORT: '0',
      MARINA_FIX_OPERATOR_TOKENS: `${ada.line}\n${past.line}\nbola:a-token-of-bola-that-is-long`,
    };
    fix = await TestAdapter.start(variables);
    await fix.active();
    operator = await ReflectedClient.connect(`127.0.0.1:${fix.adapter.adminPort}`);
  });
  after(async () => {
    operator.close();
    await fix.stop();
    await exchange.close();
    await database.close();
    await made.drop();
  });
  beforeEach(() => isUp());

  const call = async (name: string, request: JsonObject = {}, client = operator, token = ada.token): Promise<Found> =>
    withCamelCase(await client.call(`marina.fix.v1.FixOperations.${name}`, request, token));
  const refusal = async (calling: Promise<unknown>): Promise<ServiceError> => {
    const answer = await calling.catch((error: unknown) => ({ error }));
    assert.ok(answer !== null && typeof answer === 'object' && 'error' in answer, 'it was not refused');
    return answer.error as ServiceError;
  };
  const audit = async () => {
    const rows = await database.read(statement('SELECT * FROM fix_audit ORDER BY id'));
    return rows.map(({ operator: who, action, reason, was, became }) => [who, action, reason, was, became]);
  };

  it('answers nobody without a token that holds, and says nothing more', async () => {
    const names = [
      'GetSession',
      'ListMessages',
      'ListFindings',
      'AskOrder',
      'LogOut',
      'LogOn',
      'GetNumbers',
      'SetNumbers',
      'SettleFinding',
    ];
    for (const name of names) {
      for (const token of ['', 'marina_operator_wrong-wrong-wrong', past.token]) {
        const { code, details } = await refusal(call(name, {}, operator, token));
        assert.deepEqual([code, details], [status.UNAUTHENTICATED, 'a valid operator token is needed'], name);
      }
    }
    assert.deepEqual(await audit(), []);
    assert.equal(
      (await call('GetSession', {}, operator, 'a-token-of-bola-that-is-long')).session.state.length > 0,
      true,
    );
  });

  it('shows the session: its state, process, numbers, orders and findings', async () => {
    await eventually(async () => {
      const { session } = await call('GetSession');
      assert.equal(session.state, 'SESSION_STATE_UP');
      assert.equal(session.reason ?? '', '');
      assert.match(session.process, new RegExp(`-${process.pid}-`));
      assert.ok(Number(session.numbers.nextOut) > 1);
    });
    const before = (await call('GetSession')).session;
    const one = order();
    await fix.orders.submitOrder(one, soon);
    exchange.send('8', ...exchange.report('ord_not_ours', '0'));
    await eventually(async () => {
      const { session } = await call('GetSession');
      assert.equal(Number(session.ordersOpen ?? 0), Number(before.ordersOpen ?? 0) + 1);
      assert.equal(session.findings, (before.findings ?? 0) + 1);
      assert.equal(Number(session.numbers.nextOut), Number(before.numbers.nextOut) + 1);
    });
    const { findings } = await call('ListFindings', { limit: 1 });
    assert.deepEqual([findings[0].what, findings[0].orderId], ['unknown_order', 'ord_not_ours']);
    assert.equal((await call('ListFindings', { orderId: one.clientOrderId })).findings?.length ?? 0, 0);
    assert.equal((await call('ListFindings', { orderId: 'ord_not_ours' })).findings.length, 1);
    const { id, facts, settlement } = findings[0];
    assert.equal(JSON.parse(facts).ClOrdID, 'ord_not_ours');
    assert.equal(settlement, undefined);
    // Of several operators at once one settles it, and the others are told that it is settled.
    const note = 'a test order of the exchange, ticket 7';
    const tries = await Promise.allSettled(Array.from({ length: 6 }, () => call('SettleFinding', { id, note })));
    const refused = tries.flatMap((one) => (one.status === 'rejected' ? [(one.reason as ServiceError).code] : []));
    assert.deepEqual(refused, Array(5).fill(status.FAILED_PRECONDITION));
    const [settled] = (await call('ListFindings', { orderId: 'ord_not_ours' })).findings;
    assert.deepEqual(
      [settled.settlement.operator, settled.settlement.note],
      ['ada', 'a test order of the exchange, ticket 7'],
    );
    const open = await call('ListFindings', { openOnly: true });
    assert.ok(!(open.findings ?? []).some((one: Found) => one.id === id));
    assert.equal((await call('GetSession')).session.findings ?? 0, before.findings ?? 0);
    for (const [request, code] of [
      [{ id, note: 'again' }, status.FAILED_PRECONDITION],
      [{ id: '999999', note: 'none' }, status.NOT_FOUND],
      [{ id }, status.INVALID_ARGUMENT],
    ] as const) {
      assert.equal((await refusal(call('SettleFinding', request))).code, code);
    }
  });

  it('lists messages by each filter, page by page', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const { messages } = await eventually(async () => {
      const found = await call('ListMessages', { orderId: one.clientOrderId });
      assert.equal(found.messages?.length, 2);
      return found;
    });
    const [report, sent] = messages;
    assert.deepEqual(
      [sent.direction, sent.typeName, sent.outcome, sent.clOrdId],
      ['MESSAGE_DIRECTION_OUT', 'NewOrderSingle', 'MESSAGE_OUTCOME_WRITTEN', one.clientOrderId],
    );
    assert.deepEqual(
      [report.direction, report.type, report.outcome],
      ['MESSAGE_DIRECTION_IN', '8', 'MESSAGE_OUTCOME_APPLIED'],
    );
    const filters: JsonObject[] = [
      { clOrdId: one.clientOrderId, direction: 'MESSAGE_DIRECTION_OUT' },
      { number: sent.number, direction: 'MESSAGE_DIRECTION_OUT' },
      { number: String(Number(sent.number) - 1), toNumber: sent.number, type: 'D', limit: 1 },
      { type: 'D', since: sent.at, limit: 1 },
    ];
    for (const filter of filters) {
      const found = await call('ListMessages', filter);
      assert.deepEqual(found.messages?.[0]?.id, sent.id, JSON.stringify(filter));
    }
    const page = await call('ListMessages', { orderId: one.clientOrderId, limit: 1 });
    assert.equal(page.hasMore, true);
    const next = await call('ListMessages', { orderId: one.clientOrderId, limit: 1, beforeId: page.messages[0].id });
    assert.deepEqual([next.messages[0].id, next.hasMore ?? false], [sent.id, false]);
    for (const [wrong, field] of [
      [{ limit: 201 }, 'limit'],
      [{ number: '5', toNumber: '4' }, 'to_number'],
      [{ number: '5', toNumber: '2000' }, 'to_number'],
      [{ toNumber: '5' }, 'to_number'],
      [{ since: sent.at, until: sent.at }, 'until'],
    ] as const) {
      const { code, details } = await refusal(call('ListMessages', wrong));
      assert.equal(code, status.INVALID_ARGUMENT);
      assert.match(details, new RegExp(field));
    }
  });

  it('asks the exchange about an order, and shows what it answered and what is known', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    const answer = await call('AskOrder', { orderId: one.clientOrderId });
    assert.equal(answer.answer, 'ORDER_ANSWER_FOUND');
    assert.deepEqual([answer.order.state, answer.order.filled ?? '0', answer.order.quantity], ['open', '0', '100']);
    assert.deepEqual(
      answer.messages.map(({ direction, type }: Found) => `${direction} ${type}`),
      ['MESSAGE_DIRECTION_OUT H', 'MESSAGE_DIRECTION_IN 8'],
    );
    exchange.intercept = ({ type }) => type === messageTypes.OrderStatusRequest;
    try {
      const silent = await call('AskOrder', { orderId: one.clientOrderId });
      assert.deepEqual([silent.answer, silent.detail], ['ORDER_ANSWER_UNKNOWN', 'the exchange did not answer']);
    } finally {
      exchange.intercept = () => false;
      exchange.nextIn += 1;
    }
    const { code } = await refusal(call('AskOrder', { orderId: 'ord_nobody' }));
    assert.equal(code, status.NOT_FOUND);
  });

  it('logs out until it is told to log on, refuses orders meanwhile, and notes who did it and why', async () => {
    const entries = (await audit()).length;
    const out = await call('LogOut', { reason: 'the exchange tests its fail-over' });
    assert.equal(out.changed, true);
    assert.deepEqual([out.session.state, out.session.loggedOut], ['SESSION_STATE_LOGGED_OUT', true]);
    assert.equal(ofType(exchange, messageTypes.Logout).length, 1, 'it says so to the exchange');
    const { connections } = exchange;
    const again = await call('LogOut', { reason: 'twice' });
    assert.equal(again.changed ?? false, false);
    await assert.rejects(fix.orders.submitOrder(order(), soon), { code: status.FAILED_PRECONDITION });
    assert.equal(exchange.connections, connections);
    const on = await call('LogOn', { reason: 'it is over' });
    assert.deepEqual([on.changed, on.session.state], [true, 'SESSION_STATE_UP']);
    await isUp();
    await fix.orders.submitOrder(order(), soon);
    assert.deepEqual((await audit()).slice(entries), [
      ['ada', 'FixOperations.LogOut', 'the exchange tests its fail-over', 'on', 'out'],
      ['ada', 'FixOperations.LogOn', 'it is over', 'out', 'on'],
    ]);
    const { session } = await call('GetSession');
    assert.deepEqual(
      [session.lastChange.operator, session.lastChange.action, session.lastChange.reason],
      ['ada', 'FixOperations.LogOn', 'it is over'],
    );
    for (const name of ['LogOut', 'LogOn']) {
      for (const reason of ['', 'x'.repeat(201)]) {
        assert.equal((await refusal(call(name, { reason }))).code, status.INVALID_ARGUMENT);
      }
    }
  });

  it('stays logged out when a standby takes over, which can be told to log on by another process', async () => {
    const standby = await TestAdapter.start(variables);
    const other = await ReflectedClient.connect(`127.0.0.1:${standby.adapter.adminPort}`);
    try {
      const { code } = await refusal(call('AskOrder', { orderId: 'ord_a' }, other));
      assert.equal(code, status.FAILED_PRECONDITION);
      // The process without the session stores the wish, and the one with it obeys.
      assert.equal((await call('LogOut', { reason: 'maintenance' }, other)).session.state, 'SESSION_STATE_LOGGED_OUT');
      operator.close();
      await fix.stop();
      const { connections } = exchange;
      await standby.active();
      await eventually(async () => {
        const { session } = await call('GetSession', {}, other);
        assert.equal(session.state, 'SESSION_STATE_LOGGED_OUT');
      });
      await assert.rejects(standby.orders.submitOrder(order(), soon), { code: status.FAILED_PRECONDITION });
      assert.equal(exchange.connections, connections, 'nobody connects');
      await fix.start();
      operator = await ReflectedClient.connect(`127.0.0.1:${fix.adapter.adminPort}`);
      assert.equal((await call('LogOn', { reason: 'done' })).session.state, 'SESSION_STATE_UP');
      await isUp(standby);
    } finally {
      other.close();
      await standby.stop();
    }
    await fix.active();
  });

  it('sets the numbers only while the session is logged out, and the session goes on with them', async () => {
    const refused = await refusal(call('SetNumbers', { nextOut: '5', nextIn: '6', reason: 'agreed' }));
    assert.equal(refused.code, status.FAILED_PRECONDITION);
    await call('LogOut', { reason: 'numbers' });
    const { numbers } = await call('GetNumbers');
    const given = { nextOut: '500', nextIn: '600' };
    const set = await call('SetNumbers', { ...given, reason: 'agreed by telephone' });
    assert.deepEqual([set.before.nextOut, set.before.nextIn], [numbers.nextOut, numbers.nextIn]);
    assert.deepEqual([set.after.nextOut, set.after.nextIn], ['500', '600']);
    assert.deepEqual((await audit()).at(-1), [
      ...['ada', 'FixOperations.SetNumbers', 'agreed by telephone'],
      JSON.stringify({ next_out: Number(numbers.nextOut), next_in: Number(numbers.nextIn) }),
      JSON.stringify({ next_out: 500, next_in: 600 }),
    ]);
    for (const wrong of [
      { ...given, nextOut: '0' },
      { ...given, nextIn: '-1' },
    ]) {
      assert.equal((await refusal(call('SetNumbers', { ...wrong, reason: 'x' }))).code, status.INVALID_ARGUMENT);
    }
    exchange.nextIn = 500;
    exchange.nextOut = 600;
    assert.equal((await call('LogOn', { reason: 'numbers are set' })).session.state, 'SESSION_STATE_UP');
    assert.equal(ofType(exchange, messageTypes.Logon).at(-1)?.number, 500);
    await fix.orders.submitOrder(order(), soon);
  });

  it('notices that the numbers were set although it has them in memory', async () => {
    const one = order();
    await fix.orders.submitOrder(one, soon);
    await call('LogOut', { reason: 'numbers' });
    const { numbers } = await call('GetNumbers');
    const next = { nextOut: String(Number(numbers.nextOut) + 10), nextIn: numbers.nextIn };
    await call('SetNumbers', { ...next, reason: 'ten further' });
    exchange.nextIn += 10;
    await call('LogOn', { reason: 'go on' });
    await isUp();
    exchange.fill(one.clientOrderId, 100, '250.5');
    await eventually(async () => {
      const { reports } = await fix.orders.lookUpOrder({ clientOrderId: one.clientOrderId }, soon);
      assert.equal(reports.length, 2);
    });
  });

  it('shows no password in its answers or its log, whatever the exchange says', async () => {
    exchange.send('B', [tags.Text, 'hello'], [554, 'a-Password']);
    await eventually(async () => {
      const { messages } = await call('ListMessages', { type: 'B' });
      assert.match(messages[0].text, /554=\*\*\*/);
    });
    assert.ok(!fix.logged.join('').includes('a-Password'));
  });
});

describe("the FIX adapter's operators' port over TLS", () => {
  it('shows its certificate, and answers only operators with a certificate and a token', async () => {
    const authority = await makeAuthority('operations');
    const [server, client] = [await authority.issue(['localhost']), await authority.issueClient('ada')];
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const files = { cert: server.cert, key: server.key, ca: authority.cert };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
    const made = await createFixDatabase();
    const fix = await TestAdapter.start({
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: '127.0.0.1:1',
      MARINA_FIX_ADMIN_HOST: '0.0.0.0',
      MARINA_FIX_ADMIN_PORT: '0',
      MARINA_FIX_OPERATOR_TOKENS: ada.line,
      MARINA_FIX_ADMIN_TLS_CERT_FILE: join(folder, 'cert'),
      MARINA_FIX_ADMIN_TLS_KEY_FILE: join(folder, 'key'),
      MARINA_FIX_ADMIN_TLS_CLIENT_CA_FILE: join(folder, 'ca'),
    });
    const address = `localhost:${fix.adapter.adminPort}`;
    const [ca, key, cert] = [authority.cert, client.key, client.cert].map((text) => Buffer.from(text));
    try {
      assert.ok(ca !== undefined && key !== undefined && cert !== undefined);
      for (const channel of [credentials.createInsecure(), credentials.createSsl(ca)]) {
        await assert.rejects(ReflectedClient.connect(address, channel));
      }
      const operator = await ReflectedClient.connect(address, credentials.createSsl(ca, key, cert));
      const name = 'marina.fix.v1.FixOperations.GetSession';
      await assert.rejects(operator.call(name, {}, 'no-token'), { code: status.UNAUTHENTICATED });
      assert.ok('session' in (await operator.call(name, {}, ada.token)));
      operator.close();
    } finally {
      await fix.stop();
      await made.drop();
    }
  });
});
