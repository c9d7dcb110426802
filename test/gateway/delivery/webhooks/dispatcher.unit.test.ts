import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SendRequest } from '../../../../src/gateway/delivery/webhooks/attempt/sender.ts';
import { Dispatcher, type DispatcherOptions } from '../../../../src/gateway/delivery/webhooks/dispatcher.ts';
import type { SendResult } from '../../../../src/gateway/delivery/webhooks/rules.ts';
import { deliveries, type Endpoint, endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import { Metrics } from '../../../../src/gateway/edge/metrics.ts';
import type { Decision, SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { SystemClock } from '../../../../src/kit/clock.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { passingTracer } from '../../../../src/kit/trace.ts';
import { startWorker } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { storedRow } from '../../../support/stored-row.ts';
import { delivery, endpoint } from '../../../support/webhook-rows.ts';

/** A dispatcher and a database with one endpoint, whose queue the test fills. */
function startDispatcher() {
  const state = {
    row: endpoint() as Endpoint,
    queue: [] as number[],
    /** How many of the next reads of the queue, polls and claims fail. */
    failing: { reads: 0, polls: 0, claims: 0 },
  };
  const said: string[] = [];
  const fail = (what: keyof typeof state.failing) => {
    if (state.failing[what] === 0) return;
    state.failing[what] -= 1;
    throw new Error('the database is away');
  };
  const database = {
    async readAll(queries: readonly Statement[]): Promise<SqlRow[][]> {
      if (queries[0]?.sql.startsWith('SELECT e.partner_id')) {
        fail('polls');
        said.push(queries[0].sql.includes('FORCE INDEX (webhook_endpoints_due_at)') ? 'poll' : 'full scan');
        return [state.queue.length > 0 ? [{ partner_id: 'par_1' }] : [], [storedRow(endpoints, state.row)]];
      }
      fail('reads');
      return queries.map(({ sql }) => {
        if (!sql.includes('d.queue = 1')) return [];
        return state.queue.map((version) => {
          const one = delivery(version);
          return {
            ...storedRow(deliveries, one as never),
            body: one.body,
            request_id: null,
            trace_parent: null,
            object_id: null,
          };
        });
      });
    },
    async transaction(reads: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<unknown>) {
      const text = reads.map(({ sql }) => sql).join(';');
      if (text.includes('INSERT IGNORE INTO leases')) return 1n;
      if (text.startsWith('SELECT e.*')) {
        fail('claims');
        const claimed = decide([[storedRow(endpoints, state.row)]]).result;
        state.row = { ...state.row, fence: state.row.fence + 1n };
        said.push('claimed');
        return claimed;
      }
      if (text.startsWith('SELECT * FROM webhook_endpoints')) {
        said.push('released');
        return undefined;
      }
      said.push('recorded');
      return decide([[storedRow(endpoints, state.row)], [], [{ saved: 1 }]]).result;
    },
    write: async () => 1,
  };
  const sent: { id: string; end: (result: SendResult) => void }[] = [];
  const options = {
    database,
    holder: 'test',
    clock: new SystemClock(),
    log: createLogger({ name: 'test', level: 'silent' }),
    metrics: new Metrics(),
    tracer: passingTracer,
    keysOf: () => [Buffer.from('key')],
    sender: {
      send: ({ id }: SendRequest, onAhead: () => void) =>
        new Promise<SendResult>((end) => {
          onAhead();
          sent.push({
            id,
            end(result) {
              state.queue = state.queue.filter((version) => `msg_${version}` !== id);
              end(result);
            },
          });
        }),
    },
  };
  const dispatcher = new Dispatcher(options as unknown as DispatcherOptions);
  const queue = (...versions: readonly number[]) => {
    state.queue.push(...versions);
    dispatcher.wake(['par_1']);
  };
  return { dispatcher, state, said, sent, queue };
}

const delivered: SendResult = { outcome: 'delivered', status: 200, errorClass: null, durationMs: 1 };

describe('the dispatcher of webhooks', { concurrency: true, timeout: 30_000 }, () => {
  it('an event is sent however often its queue could not be read, and so is the next one', async (t) => {
    const { dispatcher, state, sent, queue } = startDispatcher();
    t.after(startWorker(dispatcher.worker));
    for (const version of [1, 2]) {
      // More than there are readers: each must be free again after its failure.
      state.failing.reads = 3;
      queue(version);
      await eventually(() =>
        assert.deepEqual(
          sent.map(({ id }) => id),
          [`msg_${version}`],
        ),
      );
      sent.pop()?.end(delivered);
    }
  });

  it('an event is sent however often the endpoint could not be claimed, and endpoints could not be scanned', async (t) => {
    const { dispatcher, state, said, sent, queue } = startDispatcher();
    Object.assign(state.failing, { polls: 2, claims: 2 });
    t.after(startWorker(dispatcher.worker));
    queue(1);
    await eventually(() => assert.equal(sent.length, 1));
    assert.equal(said.filter((one) => one === 'full scan').length, 1, 'a scan that failed is made again');
    assert.equal(said[0], 'full scan');
    sent[0]?.end(delivered);
  });

  it('a stop waits for an attempt, records it and gives the endpoint back', async () => {
    const { dispatcher, said, sent, queue } = startDispatcher();
    const stop = startWorker(dispatcher.worker);
    queue(1);
    await eventually(() => assert.equal(sent.length, 1));
    said.splice(0);
    const stopped = stop();
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    assert.deepEqual(said, []);
    sent[0]?.end(delivered);
    await stopped;
    assert.deepEqual(said, ['recorded', 'released']);
    assert.deepEqual(dispatcher.wake(['par_1']), ['par_1'], 'it serves nothing any more');
    assert.equal(dispatcher.lagMs, 0);
  });
});
