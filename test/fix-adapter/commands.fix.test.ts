import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fieldText, typeOf } from '../../src/fix-adapter/messages/names.ts';
import { readTime } from '../../src/fix-adapter/operations/times.ts';
import { checkSum, encode, type Field } from '../../src/fix-adapter/wire/message.ts';
import { utcTimestamp } from '../../src/fix-adapter/wire/times.ts';
import { newOperatorToken } from '../../src/kit/operator-tokens.ts';
import { gatewayEntry, withoutOurs } from '../../src/sandbox/processes.ts';
import { running } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, order, soon, TestAdapter } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';
import { ReflectedClient } from '../support/reflected.ts';

const ada = newOperatorToken('ada', Date.now() + 86_400_000);

describe('the commands of the FIX adapter for operators', () => {
  let made: Awaited<ReturnType<typeof createFixDatabase>>;
  let exchange: Exchange;
  let fix: TestAdapter;
  let variables: Record<string, string>;
  let one: ReturnType<typeof order>;
  before(async () => {
    made = await createFixDatabase();
    exchange = await Exchange.start();
    variables = {
      MARINA_FIX_DATABASE_URL: made.url,
      MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
      MARINA_FIX_SENDER_COMP_ID: 'MARINA',
      MARINA_FIX_TARGET_COMP_ID: 'EXCHANGE',
      MARINA_FIX_BACK_OFFICE_ADDRESS: '127.0.0.1:1',
      MARINA_FIX_SESSION_DAYS: 'mon-sun',
    };
    fix = await TestAdapter.start({
      ...variables,
      MARINA_FIX_ADMIN_PORT: '0',
      MARINA_FIX_OPERATOR_TOKENS: ada.line,
      MARINA_FIX_USERNAME: 'marina',
      MARINA_FIX_PASSWORD: 'correct-HORSE',
    });
    await fix.active();
    await eventually(() => assert.ok(fix.adapter.isUp), 20_000);
    one = order();
    await fix.orders.submitOrder(one, soon);
    exchange.fill(one.clientOrderId, 40, '250.5');
    exchange.raw(withEscape(exchange, [[35, '8'], ...exchange.report('ord_not_ours', '0', [[58, 'name~[31m']])]));
    await eventually(async () => {
      assert.equal((await run('messages', '--order', 'ord_not_ours')).out.split('\n').length, 3);
    });
  });
  after(async () => {
    await fix.stop();
    await exchange.close();
    await made.drop();
  });

  /** Runs a command as an operator does, in a process of its own. */
  function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    return new Promise((resolve) => {
      const options = { env: { ...withoutOurs(process.env), ...variables } };
      const all = [...running(gatewayEntry), 'fix', ...args];
      execFile(process.execPath, all, options, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, err });
      });
    });
  }

  it('lists messages by order with time, direction, number, name, outcome and fields, oldest first', async () => {
    const { code, out, err } = await run('messages', '--order', one.clientOrderId);
    assert.equal(code, 0);
    const [titles = '', sent = '', accepted = '', traded = ''] = out.split('\n');
    assert.match(titles, /^Lagos +UTC +number +message +outcome +fields$/);
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} {2}\d\d:\d\d:\d\d\.\d{3}Z`;
    const fields = `ClOrdID=${one.clientOrderId} .*Account=NG-0000001 .*Symbol=MTNN Side=buy .*Price=250.50 TimeInForce=day`;
    assert.match(sent, new RegExp(`^${time}  →  \\d+ +NewOrderSingle +written +${fields}`));
    assert.match(accepted, new RegExp(`^${time}  ←  \\d+ +ExecutionReport +applied +.*ExecType=new OrdStatus=new`));
    assert.match(traded, /ExecType=trade OrdStatus="partially filled".*LastQty=40 LastPx=250.5$/);
    assert.match(err, /^3 messages, oldest first\n$/);
  });

  it('finds messages by ClOrdID, numbers, direction, type and time, raw too, and says how to see older ones', async () => {
    const raw = await run('messages', '--cl-ord-id', one.clientOrderId, '--raw', '--direction', 'out');
    assert.match(raw.out, /^\d+ \d{4}-\d\d-\d\dT[\d:.]+Z out written 35=D\|49=MARINA\|/);
    const logons = await run('messages', '--type', 'logon');
    assert.match(logons.out, /→ +1 +Logon +written +.*Password=\*\*\*/);
    assert.ok(!logons.out.includes('HORSE'));
    const numbers = await run('messages', '--number', '1-1', '--since', '1h', '--direction', 'in');
    assert.match(numbers.out, /← +1 +Logon +applied/);
    const first = await run('messages', '--limit', '1');
    const [, before = ''] = /--before (\d+)/.exec(first.err) ?? [];
    const second = await run('messages', '--limit', '1', '--before', before, '--raw');
    assert.notEqual(second.out, '');
    const none = await run('messages', '--until', '2020-01-01');
    assert.deepEqual([none.code, none.out, none.err], [0, '', 'no message matches\n']);
  });

  it('shows the session while it is up, while it is logged out, and while no adapter runs', async () => {
    const up = await run('session');
    assert.match(up.out, new RegExp(`^session +MARINA → EXCHANGE at 127.0.0.1:${exchange.port}, FIXT.1.1$`, 'm'));
    assert.match(up.out, /^state +up since \d{4}-/m);
    assert.match(up.out, /^our next number +\d+$/m);
    assert.match(up.out, /^orders open +1$/m);
    assert.match(up.out, /^open findings +1, /m);
    const operator = await ReflectedClient.connect(`127.0.0.1:${fix.adapter.adminPort}`);
    await operator.call('marina.fix.v1.FixOperations.LogOut', { reason: 'a test of the desk' }, ada.token);
    operator.close();
    const out = await run('session');
    assert.match(out.out, /^state +logged out since/m);
    assert.match(out.out, /^why not up +an operator has logged it out$/m);
    assert.match(out.out, /^last change +FixOperations.LogOut by ada, .*: a test of the desk$/m);
    await fix.stop();
    const down = await run('session');
    assert.match(down.out, /^state +none$/m);
    assert.match(down.out, /^why not up +no process has the session$/m);
    assert.match((await run('messages', '--order', one.clientOrderId)).err, /^3 messages/);
  });

  it('lists findings with their facts, open ones and those of an order, and none of their text steers the terminal', async () => {
    const { code, out, err } = await run('findings', '--order', 'ord_not_ours', '--open');
    assert.equal(code, 0);
    assert.match(out, /^\d+ {2}\d{4}-.* unknown_order {2}ord_not_ours {2}open\n {4}\S/);
    assert.match(err, /^1 findings, newest first/);
    assert.ok(!out.includes('\x1b'));
    const messages = await run('messages', '--order', 'ord_not_ours');
    assert.ok(!messages.out.includes('\x1b'));
    assert.equal((await run('findings', '--order', 'ord_nothing')).err, 'no finding matches\n');
  });

  it('settles an order once, and says that it has no open finding', async () => {
    const first = await run('settle', one.clientOrderId, 'ada', 'call of 14:05');
    assert.deepEqual([first.code, first.out], [0, `${one.clientOrderId} is settled; it had no open finding\n`]);
    const again = await run('settle', one.clientOrderId, 'ada', 'call of 14:05');
    assert.deepEqual([again.code, again.out], [1, '']);
    assert.match(again.err, /^there is nothing to settle: \w+ has no open finding, and was settled before\n$/);
  });

  for (const [args, problem] of [
    [['messages', '--limit', '0'], '--limit must be a number from 1 to 1000'],
    [['messages', '--since', 'yesterday'], '--since must be a time: '],
    [['messages', '--number', '9-3'], '--number must be a number'],
    [['messages', '--direction', 'up'], '--direction must be in or out'],
    [['messages', '--session', 'both'], '--session must be order or drop-copy'],
    [['messages', '--since', '2026-02-31'], '--since must be a time: '],
    [['messages', '--type', 'NoSuchType'], '--type must be a MsgType'],
    [['messages', '--colour', 'red'], "Unknown option '--colour'"],
    [['session', 'now'], 'Unexpected argument'],
    [['findings', '--before', 'x'], '--before must be the id of a finding'],
  ] as const) {
    it(`says what is wrong with \`fix ${args.join(' ')}\`, and how to call it`, async () => {
      const { code, out, err } = await run(...args);
      assert.deepEqual([code, out], [2, '']);
      assert.ok(err.startsWith(problem), err);
      assert.match(err, /usage: fix messages \[--order ID\]/);
    });
  }
});

/** The exchange's next message, with an escape character for each `~`. */
function withEscape(exchange: Exchange, [type, ...body]: readonly Field[]): Buffer {
  const header: Field[] = [
    [49, 'EXCHANGE'],
    [56, 'MARINA'],
    [34, String(exchange.nextOut)],
    [52, utcTimestamp(Date.now())],
  ];
  exchange.nextOut += 1;
  const text = encode('FIXT.1.1', type === undefined ? [] : [type, ...header, ...body]).toString('latin1');
  const changed = text.replaceAll('~', '\x1b').slice(0, -'10=000|'.length);
  return Buffer.from(`${changed}10=${checkSum(Buffer.from(changed, 'latin1'))}\x01`, 'latin1');
}

describe('a time as an operator writes it', () => {
  const now = Date.parse('2026-11-26T23:30:00Z');
  for (const [text, expected] of [
    ['15m', '2026-11-26T23:15:00Z'],
    ['2h', '2026-11-26T21:30:00Z'],
    ['3d', '2026-11-23T23:30:00Z'],
    ['09:30', '2026-11-27T08:30:00Z'],
    ['09:30:15', '2026-11-27T08:30:15Z'],
    ['2026-11-26', '2026-11-25T23:00:00Z'],
    ['2026-11-26 09:30', '2026-11-26T08:30:00Z'],
    ['2026-11-26T09:30:00.250', '2026-11-26T08:30:00.250Z'],
    ['2026-11-26T08:30:00Z', '2026-11-26T08:30:00Z'],
    ['2026-11-26T08:30+02:00', '2026-11-26T06:30:00Z'],
    ['2028-02-29', '2028-02-28T23:00:00Z'],
  ] as const) {
    it(`is read from ${text}`, () => assert.equal(readTime(text, now), Date.parse(expected)));
  }
  for (const text of [
    '',
    'now',
    '25:00',
    '2026-13-01',
    '15',
    '1w',
    '2026-11-26T',
    '2026-02-31',
    '2026-02-29 09:30',
    '2026-04-31T08:30:00Z',
  ]) {
    it(`is none in "${text}"`, () => assert.equal(readTime(text, now), undefined));
  }
});

describe('a message for people', () => {
  it('has the names of its types, fields and values', () => {
    assert.deepEqual(['D', 'executionreport', 'AE', 'nothing'].map(typeOf), ['D', '8', 'AE', undefined]);
    assert.deepEqual(['54=2', '39=1', '150=F', '9999=x', 'junk', '58=a b'].map(fieldText), [
      ...['Side=sell', 'OrdStatus="partially filled"', 'ExecType=trade', '9999=x', 'junk', 'Text="a b"'],
    ]);
  });
});
