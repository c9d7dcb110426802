/** The events that are queued for endpoints, over an outbox and endpoints that the test holds. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { EventKey } from '../../../../src/gateway/delivery/events/outbox.ts';
import { webhookConsumer } from '../../../../src/gateway/delivery/webhooks/consumer.ts';
import type { Decision, SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../../src/kit/log.ts';

const key = (partnerId: string, version: number): EventKey => ({ partnerId, version: BigInt(version) });

it('an event is queued for an endpoint that was registered before it, once its transaction has committed', async () => {
  const events = [key('par_a', 4), key('par_a', 5), key('par_a', 6), key('par_b', 1), key('par_c', 9)];
  const endpoints = [
    { partner_id: 'par_a', after_version: 4 },
    { partner_id: 'par_c', after_version: 9 },
  ];
  const done: string[] = [];
  const transaction = async (reads: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<unknown>) => {
    const answers = reads.map(({ sql }): SqlRow[] => {
      if (sql.includes('after_version')) return endpoints;
      if (sql.includes('webhook_deliveries')) return [];
      return events.map(({ partnerId, version }) => ({ partner_id: partnerId, version, id: `msg_${version}` }));
    });
    const { writes, result } = decide(answers);
    for (const { sql, values } of writes) {
      const numbers = values.flat(3).filter((value) => typeof value === 'bigint');
      if (sql.startsWith('INSERT INTO webhook_deliveries')) done.push(`queued ${numbers}`);
      if (sql.startsWith('UPDATE webhook_endpoints')) done.push(`due ${values.flat(2).at(-1)}`);
    }
    done.push('committed');
    return result;
  };
  const log = createLogger({ name: 'consumer', level: 'silent' });
  const clock = { now: () => 1_000, realNow: () => 1_000 };
  const told = (partners: readonly string[]) => void done.push(`told ${partners}`);
  await webhookConsumer({ transaction } as never, clock, log, told).consume(events);
  assert.deepEqual(done, ['queued 5,6', 'due par_a', 'committed', 'told par_a']);
  endpoints.splice(0);
  done.splice(0);
  await webhookConsumer({ transaction } as never, clock, log, told).consume(events);
  assert.deepEqual(done, ['committed'], 'without an endpoint nothing is queued');
});
