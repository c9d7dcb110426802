/** The buffer of the message log, over a database that fails as often as the test says. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { MessageLog, type MessageLogOptions } from '../../../src/fix-adapter/messages/log.ts';
import { Masking } from '../../../src/fix-adapter/messages/masking.ts';
import { fixMessages, messageId } from '../../../src/fix-adapter/messages/table.ts';
import type { MessageOutcome } from '../../../src/fix-adapter/messages/tap.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { createLogger } from '../../../src/kit/log.ts';

/** The size of a row besides its text. */
const rowCharacters = 300;
const fence = 3n;
const columns = fixMessages.fields;

describe('the buffer of the message log', () => {
  /** The writes of the database: the ids, positions and texts of each batch. */
  let batches: { readonly ids: bigint[]; readonly positions: bigint[]; readonly texts: string[] }[];
  let failures: number;
  let lastPosition: bigint | undefined;
  let dropped: number;
  let logged: string[];

  beforeEach(() => {
    [batches, failures, lastPosition, dropped, logged] = [[], 0, undefined, 0, []];
  });

  function begin(more: Partial<MessageLogOptions> = {}) {
    const database: Partial<Database> = {
      read: async () => (lastPosition === undefined ? [] : [{ position: String(lastPosition) }]),
      write: async ({ sql, values }) => {
        assert.match(sql, /^INSERT IGNORE INTO fix_messages /);
        if (failures > 0) {
          failures -= 1;
          throw new Error('the database is away');
        }
        const flat = values.flat(2) as unknown[];
        const of = (name: string) => flat.filter((_, at) => columns[at % columns.length] === name);
        batches.push({
          ids: of('id').map((one) => BigInt(String(one))),
          positions: of('position').map((one) => BigInt(String(one))),
          texts: of('text').map(String),
        });
        return 1;
      },
    };
    const log = new MessageLog({
      ...{ database: database as Database, fence, logsHeartbeats: false, now: () => 5_000 },
      masking: new Masking({ moreTags: [], secrets: () => [] }),
      log: createLogger({ name: 'fix', level: 'debug', destination: { write: (line) => void logged.push(line) } }),
      onDropped: (count) => {
        dropped += count;
      },
      ...more,
    });
    const note = (text: string, type = '8', outcome: MessageOutcome = 'applied') =>
      log.tap(7).note({ direction: 'in', outcome, number: 1, type, fields: [[58, text]] });
    /** Tries once to write what waits, as at a stop. */
    const write = () => log.worker.run(AbortSignal.abort());
    return { log, note, write };
  }
  const texts = () => batches.flatMap((batch) => batch.texts.map((text) => text.slice('58='.length)));
  const lines = (part: string) => logged.filter((line) => line.includes(part)).length;

  it('the buffer of the message log has room again for what was written, by number and by size, however often it was full', async () => {
    const room = 3 * (rowCharacters + '58=a'.length);
    for (const maxWaiting of [
      { messages: 3, characters: 1_000_000 },
      { messages: 1_000, characters: room },
    ]) {
      [batches, dropped, logged] = [[], 0, []];
      const { note, write } = begin({ maxWaiting });
      for (let round = 1; round <= 3; round += 1) {
        for (const text of ['a', 'b', 'c', 'd', 'e']) note(text);
        assert.equal(dropped, 2 * round);
        await write();
        assert.equal(texts().join(''), 'abc'.repeat(round));
        assert.deepEqual([lines('messages are left out'), lines('messages were left out')], [round, round]);
      }
    }
    assert.match(logged.at(-1) ?? '', /"messages":2,/, 'those of this time alone');
  });

  it('a batch that could not be written is written again with the same ids and places, before what came later, and an operator is told once', async () => {
    lastPosition = 1_000n;
    const { log, note, write } = begin();
    for (let time = 1; time <= 2; time += 1) {
      failures = 3;
      note('a');
      let isWritten = false;
      const written = log.written(60_000).then(() => {
        isWritten = true;
      });
      for (let count = 0; count < 3; count += 1) await write();
      note('b');
      assert.deepEqual([isWritten, texts().length], [false, 2 * (time - 1)]);
      await write();
      await written;
      assert.equal(texts().join(''), 'ab'.repeat(time));
      assert.equal(lines('could not be written'), time);
    }
    const ids = batches.flatMap((batch) => batch.ids);
    assert.deepEqual(
      ids,
      [1n, 2n, 3n, 4n].map((nth) => messageId(fence, nth)),
    );
    const size = BigInt(rowCharacters + '58=a'.length);
    const positions = batches.flatMap((batch) => batch.positions);
    assert.deepEqual(
      positions,
      [1n, 2n, 3n, 4n].map((nth) => 1_000n + nth * size),
    );
  });

  it('the message log writes at most 1,000 rows and a mebibyte at once, and a longer row by itself', async () => {
    const { note, write } = begin();
    for (let count = 0; count < 1_001; count += 1) note('a');
    await write();
    assert.deepEqual(
      batches.map(({ ids }) => ids.length),
      [1_000, 1],
    );
    batches = [];
    for (let count = 0; count < 300; count += 1) note('x'.repeat(8_000));
    await write();
    const row = 8_000 + '58='.length + rowCharacters;
    const most = Math.floor(1_048_576 / row);
    assert.deepEqual(
      batches.map(({ ids }) => ids.length),
      [most, most, 300 - 2 * most],
    );
  });

  it('Heartbeats and tests are left out of the message log only if nothing special became of them', async () => {
    const { note, write } = begin();
    for (const type of ['0', '1', '2']) {
      for (const outcome of ['applied', 'written', 'gap', 'duplicate', 'not_written', 'refused'] as const) {
        note(`${type} ${outcome}`, type, outcome);
      }
    }
    await write();
    const special = ['gap', 'duplicate', 'not_written', 'refused'];
    assert.deepEqual(texts(), [
      ...special.map((outcome) => `0 ${outcome}`),
      ...special.map((outcome) => `1 ${outcome}`),
      ...['applied', 'written', ...special].map((outcome) => `2 ${outcome}`),
    ]);
  });

  it('a fault of the message log is none of the session, and is counted', async () => {
    let isWrong = true;
    const masking = new Masking({
      moreTags: [],
      secrets: () => {
        if (isWrong) throw new Error('a defect');
        return [];
      },
    });
    const { note, write } = begin({ masking });
    note('a');
    isWrong = false;
    note('b');
    await write();
    assert.deepEqual([texts(), dropped], [['b'], 1]);
  });

  it('who waits for a message log without messages goes on at once, and its worker writes what comes until the process stops', async () => {
    const { log, note } = begin();
    await log.written(60_000);
    const stop = new AbortController();
    const running = log.worker.run(stop.signal);
    note('a');
    await log.written(60_000);
    assert.deepEqual(texts(), ['a']);
    note('b');
    stop.abort();
    await running;
    assert.deepEqual(texts(), ['a', 'b']);
  });
});
