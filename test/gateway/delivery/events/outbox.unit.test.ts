import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { type EventKey, OutboxConsumer } from '../../../../src/gateway/delivery/events/outbox.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import type { Decision, SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import type { Logger } from '../../../../src/kit/log.ts';
import { UnavailableError } from '../../../../src/kit/refusal.ts';

/** How long a partner's events wait after they could not be consumed. */
const restMs = 10_000;

const event = (partnerId: string, version: number): EventKey => ({ partnerId, version: BigInt(version) });
const [one, two, three] = [event('par_1', 1), event('par_2', 1), event('par_3', 1)];

/** The outbox, and what was written of its events before, with a consumer that notes the events of each transaction. */
function startConsumer({ mock }: TestContext) {
  const clock = { ms: 50_000 };
  mock.method(performance, 'now', () => clock.ms);
  const state = {
    /** Of which partners a transaction fails, and by what. */
    failing: new Map<string, Error>(),
    held: [one, two, three] as EventKey[],
    written: [] as SqlRow[],
    /** The values by which the last transaction removed rows. */
    removed: undefined as Statement['values'] | undefined,
  };
  const noted: string[] = [];
  const logged: unknown[] = [];
  const idOf = ({ partnerId, version }: EventKey) => `msg_${partnerId}_${version}`;
  let asked: readonly EventKey[] = [];
  const database = {
    async transaction(reads: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<unknown>) {
      const partners = [...new Set(asked.map(({ partnerId }) => partnerId))].filter((id) => {
        return reads[0]?.values.includes(id);
      });
      noted.push(`locks ${partners}`);
      for (const id of partners) if (state.failing.has(id)) throw state.failing.get(id);
      const locked = state.held.filter(({ partnerId }) => partners.includes(partnerId));
      const rows = locked.map((key) => ({ partner_id: key.partnerId, version: key.version, id: idOf(key) }));
      const isCompared = reads.length > 2;
      const { writes, result } = decide([rows, ...(isCompared ? [state.written] : []), [{ partner_id: 'par_read' }]]);
      state.removed = writes.find(({ sql }) => sql.startsWith('DELETE'))?.values;
      noted.push(`writes ${writes.map(({ sql }) => sql.split(' ')[0])}`);
      return result;
    },
  };
  const log = { error: ({ partnerId }: { partnerId: string }) => void logged.push(partnerId) };
  const consumer = new OutboxConsumer('test', database as unknown as Database, log as unknown as Logger, {
    reads: () => [{ sql: 'SELECT endpoints', values: [] }],
    decide(consumed, more) {
      assert.deepEqual(more, [[{ partner_id: 'par_read' }]], 'its own reads');
      const ids = consumed.map(({ id }) => id);
      const insert = { sql: 'INSERT', values: [] };
      return { writes: ids.length === 0 ? [] : [insert], afterwards: () => noted.push(`told ${ids}`) };
    },
    written: () => ({ sql: 'SELECT written', values: [] }),
  });
  const consume = async (...events: readonly EventKey[]) => {
    noted.splice(0);
    asked = events;
    await consumer.consume(events);
    return noted;
  };
  return { consumer, consume, state, noted, clock, logged, idOf };
}

describe('the consumer of the outbox', () => {
  it('events are written and removed in the transaction that locks them, and told of after it', async (t) => {
    const { consume, state } = startConsumer(t);
    const done = ['locks par_1,par_2', 'writes INSERT,DELETE', 'told msg_par_1_1,msg_par_2_1'];
    assert.deepEqual(await consume(one, two), done);
    state.held = [two];
    assert.deepEqual(
      await consume(one, two),
      ['locks par_1,par_2', 'writes INSERT,DELETE', 'told msg_par_2_1'],
      'another process consumed one of them',
    );
    state.held = [];
    assert.deepEqual(await consume(one, two), ['locks par_1,par_2', 'writes ', 'told '], 'and now all of them');
    assert.deepEqual(await consume(), []);
  });

  it('events of a partner that cannot be consumed rest for ten seconds each time, and hold up nobody', async (t) => {
    const { consumer, consume, state, clock, logged } = startConsumer(t);
    const asTold = (partners: string) => [`locks ${partners}`, 'writes INSERT,DELETE'];
    state.failing.set('par_2', new Error('another event is there'));
    for (const time of ['first', 'second']) {
      const done = await consume(one, two, three);
      assert.deepEqual(
        done.filter((line) => !line.startsWith('told')),
        ['locks par_1,par_2,par_3', ...asTold('par_1'), 'locks par_2', ...asTold('par_3')],
        time,
      );
      assert.deepEqual([consumer.stuck, consumer.resting, logged], [['par_2'], ['par_2'], ['par_2']], time);
      clock.ms += restMs - 1;
      assert.equal((await consume(one, two))[0], 'locks par_1', 'it rests');
      assert.deepEqual(await consume(two), [], 'it rests');
      clock.ms += 1;
      assert.deepEqual([consumer.stuck, consumer.resting], [['par_2'], []], 'it is tried again');
    }
    state.failing.clear();
    assert.equal((await consume(two))[0], 'locks par_2');
    assert.deepEqual([consumer.stuck, consumer.resting], [[], []]);
    state.failing.set('par_2', new Error('again'));
    await consume(two);
    assert.deepEqual(logged, ['par_2', 'par_2'], 'operators hear of each time that it begins');
  });

  it('a partner whose events could be consumed alone rests no more', async (t) => {
    const { consumer, consume, state, clock } = startConsumer(t);
    for (const id of ['par_1', 'par_2']) state.failing.set(id, new Error('damaged'));
    await consume(one, two);
    assert.deepEqual(consumer.stuck, ['par_1', 'par_2']);
    clock.ms += restMs;
    state.failing.delete('par_1');
    await consume(one, two);
    assert.deepEqual([consumer.stuck, consumer.resting], [['par_2'], ['par_2']]);
  });

  it('no partner rests because the database is away, whether it leaves before or while partners are tried alone', async (t) => {
    const { consumer, consume, state, noted } = startConsumer(t);
    state.failing.set('par_2', new UnavailableError());
    await assert.rejects(consume(one, two), UnavailableError);
    assert.deepEqual(noted, ['locks par_1,par_2']);
    state.failing.set('par_1', new Error('damaged'));
    await assert.rejects(consume(one, two, three), UnavailableError);
    assert.deepEqual(consumer.stuck, ['par_1']);
  });

  it('what was written of an event before is only removed when its partner is tried alone, unless another event has its place', async (t) => {
    const { consumer, consume, state, idOf } = startConsumer(t);
    state.held = [one, event('par_1', 2)];
    state.failing.set('par_2', new Error('damaged'));
    state.written = [{ partner_id: 'par_1', version: 1, id: idOf(one) }];
    assert.deepEqual((await consume(one, two)).slice(1, 4), [
      'locks par_1',
      'writes INSERT,DELETE',
      'told msg_par_1_2',
    ]);
    assert.deepEqual([consumer.stuck, state.removed], [['par_2'], ['par_1', [1n, 2n]]]);
    const other = startConsumer(t);
    other.state.failing.set('par_2', new Error('damaged'));
    other.state.written = [{ partner_id: 'par_1', version: 1, id: 'msg_of_another' }];
    await other.consume(one, two, three);
    assert.deepEqual(other.consumer.stuck, ['par_1', 'par_2']);
  });
});
