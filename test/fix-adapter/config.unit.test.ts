import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { type FixConfig, readFixConfig } from '../../src/fix-adapter/config.ts';
import { cancelRequest, newOrder, statusRequest } from '../../src/fix-adapter/orders/requests.ts';
import type { FixOrder } from '../../src/fix-adapter/store/table.ts';
import { noLookups } from '../../src/fix-adapter/template/lookups.ts';
import { renderer } from '../../src/fix-adapter/template/render.ts';
import { tags } from '../../src/fix-adapter/wire/tags.ts';

const needed = {
  MARINA_FIX_ADDRESS: 'exchange:9000',
  MARINA_FIX_SENDER_COMP_ID: 'MARINA',
  MARINA_FIX_TARGET_COMP_ID: 'EXCHANGE',
  MARINA_FIX_DATABASE_URL: 'mysql://fix:secret@database/marina_fix',
  MARINA_FIX_BACK_OFFICE_ADDRESS: 'office:50061',
};

describe('the settings of the FIX adapter', () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-fix-'));
  after(() => rmSync(folder, { recursive: true }));
  let made = 0;
  const fileOf = (variable: string, text: string) => {
    made += 1;
    const path = join(folder, `file${made}`);
    writeFileSync(path, text);
    return { [variable]: path };
  };
  const symbolsFile = (text: string) => ({ ...needed, ...fileOf('MARINA_FIX_SYMBOLS_FILE', text) });

  it('speak FIX 5.0 SP2 in naira all day from Monday to Friday, unless something else is set', () => {
    const { version, priceUnit, schedule, symbols } = readFixConfig(needed);
    assert.deepEqual([version, priceUnit, symbols.size], ['FIXT.1.1', 'naira', 0]);
    const calendar = new Map();
    assert.deepEqual(schedule, { days: new Set([1, 2, 3, 4, 5]), start: '00:00', end: '23:59:59', calendar });
    assert.equal(readFixConfig({ ...needed, MARINA_FIX_VERSION: 'FIX.4.4' }).version, 'FIX.4.4');
  });

  it('name symbols and parties as the exchange does, in orders, cancels and questions', () => {
    const {
      symbols,
      orderTemplate,
      clOrdIdLength: nameLength,
    } = readFixConfig({
      ...symbolsFile('# ours = theirs\nMTNN=MTN.NG\n'),
      MARINA_FIX_ORDER_FIELDS: '453=2|448=FIRM|447=D|452=1|448=TRADER|447=D|452=12',
    });
    const order = { id: 'ord_a', symbol: 'MTNN', side: 'buy', type: 'market', timeInForce: 'day' } as FixOrder;
    const whole = { ...order, clOrdId: 'ord_a', account: 'NG-1', quantity: 1n, priceKobo: null, exchangeOrderId: '' };
    const more = renderer(
      orderTemplate,
      () => noLookups,
      (symbol) => symbol,
    );
    const style = { symbols, more, nameLength, toPrice: String };
    for (const fields of [
      newOrder(whole, style, 0),
      cancelRequest({ id: 'ord_a.c1' }, whole, style, 0),
      statusRequest('q', whole, style),
    ]) {
      assert.ok(fields.some(([tag, value]) => tag === tags.Symbol && value === 'MTN.NG'));
      const parties = fields.filter(([tag]) => [453, 448, 447, 452].includes(tag)).map((field) => field.join('='));
      assert.deepEqual(parties, ['453=2', '448=FIRM', '447=D', '452=1', '448=TRADER', '447=D', '452=12']);
      const single = fields.map(([tag]) => tag).filter((tag) => ![448, 447, 452].includes(tag));
      assert.equal(new Set(single).size, single.length, 'no field comes twice');
    }
  });

  it('keep messages for 35 days and 4 GiB, and have no operators, unless something is set', () => {
    const config = readFixConfig(needed);
    assert.deepEqual(
      [config.messageDays, config.messageMebibytes, config.logsHeartbeats, config.maskedTags],
      [35, 4_096, false, []],
    );
    assert.deepEqual([config.adminHost, config.adminPort, config.operators.first], ['127.0.0.1', 50_062, []]);
    const { maskedTags, operators } = readFixConfig({
      ...needed,
      MARINA_FIX_MESSAGES_MASKED_TAGS: '58, 5001',
      MARINA_FIX_OPERATOR_TOKENS: 'ada:a-token-of-ada-that-is-long',
    });
    assert.deepEqual([maskedTags, operators.first.map(({ name }) => name)], [[58, 5_001], ['ada']]);
  });

  it('name the exchange, its recovery sites, its days and its calendar', () => {
    const { addresses, schedule } = readFixConfig({
      ...needed,
      ...fileOf('MARINA_FIX_CALENDAR_FILE', '2026-12-25 closed\n2026-12-24 12:00\n'),
      MARINA_FIX_ADDRESS: 'exchange:9000, recovery:9001,[::1]:9002',
      MARINA_FIX_SESSION_DAYS: 'sun-wed,fri',
      MARINA_FIX_SESSION_START: '18:00',
      MARINA_FIX_SESSION_END: '17:00',
    });
    assert.deepEqual(addresses, ['exchange:9000', 'recovery:9001', '[::1]:9002']);
    assert.deepEqual([...schedule.days], [0, 1, 2, 3, 5]);
    assert.deepEqual(
      [...schedule.calendar],
      [
        ['2026-12-25', 'closed'],
        ['2026-12-24', { start: '18:00', end: '12:00' }],
      ],
    );
  });

  it('say how the session is spoken, and by default as it was agreed with nobody', () => {
    const read = ({ resetsOnLogon, sendsNextExpected, resendChunk, logonTries, throttleWindowMs }: FixConfig) => [
      ...[resetsOnLogon, sendsNextExpected, resendChunk, logonTries, throttleWindowMs],
    ];
    assert.deepEqual(read(readFixConfig(needed)), [false, false, 0, 3, 1_000]);
    const set = {
      MARINA_FIX_RESET_ON_LOGON: 'true',
      MARINA_FIX_NEXT_EXPECTED: 'true',
      MARINA_FIX_RESEND_CHUNK: '2500',
      MARINA_FIX_LOGON_TRIES: '1',
      MARINA_FIX_THROTTLE_WINDOW_MS: '60000',
    };
    assert.deepEqual(read(readFixConfig({ ...needed, ...set })), [true, true, 2_500, 1, 60_000]);
  });

  const wrong: readonly [string, NodeJS.ProcessEnv, RegExp][] = [
    [
      'a field that each order has of its own',
      { ...needed, MARINA_FIX_ORDER_FIELDS: '1=OTHER' },
      /must not have tag 1,/,
    ],
    ['another one', { ...needed, MARINA_FIX_ORDER_FIELDS: '21=2' }, /must not have tag 21,/],
    ['PossResend', { ...needed, MARINA_FIX_ORDER_FIELDS: '97=Y' }, /must not have tag 97,/],
    [
      'hours that end when they begin',
      { ...needed, MARINA_FIX_SESSION_START: '16:00', MARINA_FIX_SESSION_END: '16:00:00' },
      /must differ/,
    ],
    ['days that are none', { ...needed, MARINA_FIX_SESSION_DAYS: 'mon-fry' }, /SESSION_DAYS must be days/],
    ['an address without a port', { ...needed, MARINA_FIX_ADDRESS: 'a:1,b' }, /MARINA_FIX_ADDRESS must be host:port/],
    ['an address that is named twice', { ...needed, MARINA_FIX_ADDRESS: 'a:1,a:1' }, /each address once/],
    ['an empty address', { ...needed, MARINA_FIX_ADDRESS: 'a:1,' }, /must be host:port/],
    [
      'a calendar with a line that is no day',
      { ...needed, ...fileOf('MARINA_FIX_CALENDAR_FILE', '2026-12-25 closed\nholiday\n') },
      /MARINA_FIX_CALENDAR_FILE line 2/,
    ],
    [
      'a calendar that is not there',
      { ...needed, MARINA_FIX_CALENDAR_FILE: join(folder, 'nowhere') },
      /MARINA_FIX_CALENDAR_FILE/,
    ],
    ['a throttle without a window', { ...needed, MARINA_FIX_THROTTLE_WINDOW_MS: '0' }, /THROTTLE_WINDOW_MS/],
    ['no try of a Logon', { ...needed, MARINA_FIX_LOGON_TRIES: '0' }, /LOGON_TRIES/],
    ['a symbol that is named twice', symbolsFile('A=B\nA=C\n'), /each symbol once/],
    ['two symbols with one name', symbolsFile('A=C\nB=C\n'), /two symbols one name/],
    ['a line that is no pair', symbolsFile('A\n'), /OURS=THEIRS/],
    ['a file that is not there', { ...needed, MARINA_FIX_SYMBOLS_FILE: join(folder, 'nowhere') }, /SYMBOLS_FILE/],
    [
      "an operators' port that others reach without TLS",
      { ...needed, MARINA_FIX_ADMIN_HOST: '0.0.0.0' },
      /must speak TLS/,
    ],
    [
      'a certificate without its key',
      { ...needed, MARINA_FIX_ADMIN_TLS_CERT_FILE: '/cert.pem' },
      /ADMIN_TLS_KEY_FILE must be set together/,
    ],
    [
      'authorities without a certificate',
      { ...needed, MARINA_FIX_ADMIN_TLS_CLIENT_CA_FILE: '/ca.pem' },
      /needs MARINA_FIX_ADMIN_TLS_CERT_FILE/,
    ],
    ['a short token of an operator', { ...needed, MARINA_FIX_OPERATOR_TOKENS: 'ada:short' }, /at least 24 characters/],
    ['a masked tag that is no number', { ...needed, MARINA_FIX_MESSAGES_MASKED_TAGS: '58,Text' }, /MASKED_TAGS/],
    ['a negative time for messages', { ...needed, MARINA_FIX_MESSAGES_DAYS: '-1' }, /MESSAGES_DAYS/],
    ['a name that there is not', { ...needed, MARINA_FIX_NOTHING: '1' }, /MARINA_FIX_NOTHING/],
  ];
  for (const [what, variables, expected] of wrong) {
    it(`refuse ${what}`, () => assert.throws(() => readFixConfig(variables), expected));
  }

  /** The settings that must be given together: a switch, what needs it, and the problem without it. */
  const links = ['FIX_SESSION', 'FIX_DATABASE', 'FIX_BACK_OFFICE'];
  it('settings that only mean something together are refused alone, each link and port by itself', () => {
    const problems = (more: NodeJS.ProcessEnv) => {
      try {
        readFixConfig({ ...needed, ...more });
        return [];
      } catch (error) {
        return (error as Error).message.split('\n');
      }
    };
    for (const link of links) {
      const variable = (end: string) => `MARINA_${link}_TLS${end}`;
      const [cert, key] = [{ [variable('_CERT_FILE')]: '/cert' }, { [variable('_KEY_FILE')]: '/key' }];
      const tls = { [variable('')]: 'required' };
      for (const [more, expected] of [
        [{ ...tls, ...cert, ...key, [variable('_CA_FILE')]: '/ca', [variable('_SERVER_NAME')]: 'exchange' }, []],
        [{ ...tls, ...cert }, [/_CERT_FILE and .*_KEY_FILE must be set together/]],
        [{ ...tls, ...key }, [/_CERT_FILE and .*_KEY_FILE must be set together/]],
        [{ [variable('_CA_FILE')]: '/ca' }, [/_CA_FILE has no effect without/]],
        [{ ...cert, ...key }, [/_CERT_FILE has no effect without/]],
        [{ [variable('_SERVER_NAME')]: 'exchange' }, [/_SERVER_NAME has no effect without/]],
      ] as const) {
        const found = problems(more);
        assert.equal(found.length, expected.length, found.join());
        for (const [at, pattern] of expected.entries()) {
          assert.match(found[at] ?? '', pattern);
          assert.ok(found[at]?.includes(link), found[at]);
        }
      }
    }
    const [cert, key] = [{ MARINA_FIX_TLS_CERT_FILE: '/cert' }, { MARINA_FIX_TLS_KEY_FILE: '/key' }];
    assert.deepEqual(problems({ ...cert, ...key }), []);
    for (const alone of [cert, key])
      assert.match(problems(alone).join(), /^MARINA_FIX_TLS_CERT_FILE and MARINA_FIX_TLS_KEY/);
    const copy = { MARINA_FIX_DROP_COPY_ADDRESS: 'exchange:9001' };
    const names = { MARINA_FIX_DROP_COPY_SENDER_COMP_ID: 'US' };
    const theirs = { MARINA_FIX_DROP_COPY_TARGET_COMP_ID: 'THEM' };
    for (const [more, count] of [
      [copy, 1],
      [{ ...copy, ...names }, 1],
      [{ ...copy, ...theirs }, 1],
      [{ ...copy, ...names, ...theirs }, 0],
      [{ ...names, ...theirs }, 0],
      [names, 0],
    ] as const) {
      assert.equal(problems(more).length, count, JSON.stringify(more));
    }
  });
});
