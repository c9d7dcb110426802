/** The commands that read a FIX session's database: what each asks for, and which times and durations people see. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { fixMessages, type StoredMessage } from '../../../src/fix-adapter/messages/table.ts';
import { type ReadCommand, readCommand } from '../../../src/fix-adapter/operations/commands.ts';
import { duration, readTime } from '../../../src/fix-adapter/operations/times.ts';
import { fixFindings } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import { storedRow } from '../../support/stored-row.ts';

/** 11:00 in Lagos. */
const now = Date.parse('2026-11-26T10:00:00Z');

describe('a command that reads the FIX session', () => {
  let printed: string[];
  let said: string[];
  beforeEach(() => {
    [printed, said] = [[], []];
    mock.method(console, 'log', (text: string) => void printed.push(text));
    mock.method(console, 'error', (text: string) => void said.push(text));
  });
  afterEach(() => mock.restoreAll());

  /** Runs a command over so many rows, and returns its reads. Undefined: it was called wrongly. */
  async function run(what: ReadCommand, args: string, count = 0): Promise<Statement[] | undefined> {
    const command = readCommand(what, args === '' ? [] : args.split(' '), now);
    if (command === undefined) return undefined;
    const reads: Statement[] = [];
    const rowsOf = (statement: Statement): SqlRow[] => {
      reads.push(statement);
      const limit = Number(/ LIMIT (\d+)$/.exec(statement.sql)?.[1] ?? 0);
      if (/ FROM fix_messages FORCE INDEX \(fix_messages_at\)/.test(statement.sql)) return [{ id: '7' }];
      const rows = Array.from({ length: Math.min(limit, count) }, (_, at) => BigInt(count - at));
      if (statement.sql.includes('FROM fix_messages')) return rows.map((id) => storedRow(fixMessages, message(id)));
      return statement.sql.includes('FROM fix_findings') ? rows.map((id) => storedRow(fixFindings, finding(id))) : [];
    };
    const database: Partial<Database> = {
      read: async (statement) => rowsOf(statement),
      readAll: async (all) => all.map(rowsOf),
    };
    await command(database as Database, {} as never, now);
    return reads;
  }

  const message = (id: bigint): StoredMessage => ({
    ...{ id, session: 'order', at: now, startedAt: 0, direction: 'in', number: id, type: '8' },
    ...{ orderId: '', clOrdId: '', outcome: 'applied', position: id, text: `34=${id}` },
  });
  const finding = (id: bigint) => ({
    ...{
      id,
      at: now,
      what: 'unsupported' as const,
      orderId: 'ord_a',
      execId: '',
      detail: `d${id}`,
      facts: null,
      bytes: null,
    },
  });
  const values = (reads: Statement[] | undefined) => (reads ?? []).flatMap((read) => [...read.values]).map(String);

  it('a command that reads the FIX session takes limits, numbers and ids that mean something, and explains itself otherwise', async () => {
    const right = [
      ['messages', '--limit 1'],
      ['messages', '--limit 1000'],
      ['messages', '--number 5'],
      ['messages', '--number 5-1004'],
      ['messages', '--before 999999999999999999'],
      ['messages', '--direction in'],
      ['messages', '--session drop-copy'],
      ['messages', '--type ExecutionReport'],
      ['messages', '--since 2h --until 5m'],
      ['findings', '--open --order ord_a --before 5 --limit 3'],
      ['rejections', '--order ord_a --limit 3'],
    ] as const;
    for (const [what, args] of right) assert.ok(await run(what, args), args);
    const wrong = [
      ['messages', '--limit 0', '--limit'],
      ['messages', '--limit 1001', '--limit'],
      ['messages', '--limit -1', 'limit'],
      ['messages', '--number 5-4', '--number'],
      ['messages', '--number 5-1005', '--number'],
      ['messages', '--number x', '--number'],
      ['messages', '--before 9999999999999999999', '--before'],
      ['messages', '--direction up', '--direction'],
      ['messages', '--session drop_copy', '--session'],
      ['messages', '--type Nonsense', '--type'],
      ['messages', '--since yesterday', '--since'],
      ['messages', '--until 2026-02-30', '--until'],
      ['messages', '--orders x', 'orders'],
      ['findings', '--before x', '--before'],
      ['findings', '--limit 1001', '--limit'],
      ['rejections', '--open', 'open'],
      ['session', '--limit 5', 'limit'],
    ] as const;
    for (const [what, args, named] of wrong) {
      said.length = 0;
      assert.equal(await run(what, args), undefined, args);
      assert.ok(said[0]?.split('\n')[0]?.includes(named), `${args}: ${said[0]}`);
      assert.match(said[0] ?? '', /\nusage: /);
    }
  });

  it('a command that reads the FIX session asks for all that is given, and for 50 by default', async () => {
    const reads = await run(
      'messages',
      '--cl-ord-id c1 --number 5-6 --direction out --type D --session order --before 40',
    );
    for (const each of ['c1', '5', '6', 'out', 'D', 'order', '40']) assert.ok(values(reads).includes(each), each);
    assert.match(reads?.at(-1)?.sql ?? '', / LIMIT 51$/);
    const times = await run('messages', '--since 10:00 --until 10:30');
    const asked = (times ?? []).flatMap((read) => read.values).filter((value) => value instanceof Date);
    for (const time of ['2026-11-26T09:00:00.000Z', '2026-11-26T09:30:00.000Z']) {
      assert.ok(
        asked.some((each) => each.toISOString() === time),
        time,
      );
    }
    const findings = await run('findings', '--order ord_a --before 5 --open --limit 3');
    assert.match(findings?.[0]?.sql ?? '', /order_id = \?.*id < \?.*NOT IN.*LIMIT 4$/s);
    assert.match((await run('findings', ''))?.[0]?.sql ?? '', / WHERE 1 = 1 .*LIMIT 51$/);
  });

  it('a command that reads the FIX session prints messages oldest first, findings newest first, and where older ones begin', async () => {
    await run('messages', '--limit 2 --raw', 3);
    assert.deepEqual(
      printed[0]?.split('\n').map((line) => line.split(' ')[0]),
      ['2', '3'],
    );
    assert.deepEqual(said, ['2 messages, oldest first; older ones: --before 2']);
    said.length = 0;
    await run('messages', '--limit 3', 3);
    assert.deepEqual(said, ['3 messages, oldest first']);
    said.length = 0;
    printed.length = 0;
    await run('findings', '--limit 2', 3);
    assert.deepEqual(
      printed[0]
        ?.split('\n')
        .filter((line) => !line.startsWith(' '))
        .map((line) => line[0]),
      ['3', '2'],
    );
    assert.deepEqual(said, ['2 findings, newest first; older ones: --before 2']);
    for (const what of ['messages', 'findings', 'rejections'] as const) {
      said.length = 0;
      printed.length = 0;
      await run(what, '');
      assert.deepEqual([printed, said], [[], [`no ${what.slice(0, -1)} matches`]]);
    }
  });
});

describe('a time of an operator', () => {
  it('a time of an operator is one of today, of a day, or ago, in Lagos unless it has a zone', () => {
    for (const [text, expected] of [
      ['15m', '2026-11-26T09:45:00.000Z'],
      ['30s', '2026-11-26T09:59:30.000Z'],
      ['2h', '2026-11-26T08:00:00.000Z'],
      ['3d', '2026-11-23T10:00:00.000Z'],
      ['00:00', '2026-11-25T23:00:00.000Z'],
      ['23:59:59.5', '2026-11-26T22:59:59.500Z'],
      ['2026-11-25', '2026-11-24T23:00:00.000Z'],
      ['2026-11-25 09:30', '2026-11-25T08:30:00.000Z'],
      ['2026-11-25T09:30:01Z', '2026-11-25T09:30:01.000Z'],
      ['2026-11-25T09:30-02:00', '2026-11-25T11:30:00.000Z'],
      ['2026-02-29', undefined],
      ['24:01', undefined],
      ['15', undefined],
      ['123456s', undefined],
      ['2026-11-25T09:30+1', undefined],
    ] as const) {
      const read = readTime(text, now);
      assert.equal(read === undefined ? undefined : new Date(read).toISOString(), expected, text);
    }
    const lateInUtc = Date.parse('2026-11-26T23:30:00Z');
    assert.equal(readTime('00:10', lateInUtc), Date.parse('2026-11-26T23:10:00Z'), 'today is that of Lagos');
  });

  it('a time of an operator is told as a duration in the unit that fits', () => {
    for (const [ms, expected] of [
      [-5, '0 s'],
      [119_499, '119 s'],
      [119_500, '2 min'],
      [7_199_000, '120 min'],
      [7_200_000, '2 h'],
      [172_799_000, '48 h'],
      [172_800_000, '2 days'],
    ] as const) {
      assert.equal(duration(ms), expected);
    }
  });
});
