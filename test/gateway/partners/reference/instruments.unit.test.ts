import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { Instruments } from '../../../../src/gateway/partners/reference/instruments.ts';
import { type BrokerRecords, firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { ReadQueue } from '../../../../src/gateway/trading/broker/read-queue.ts';
import { type ListedInstrument, ListedInstrumentSchema } from '../../../../src/gen/marina/broker/v1/reference_pb.ts';
import { patient } from '../../../support/patience.ts';

const originOf = (partnerId: string) => ({ partnerId, requestId: null, traceParent: null });
const [ofOne, ofOther] = [originOf('par_a'), originOf('par_b')];
const answer = [create(ListedInstrumentSchema, { symbol: 'MTNN' })];
const away = () => new ApiError('exchange_unavailable');

/** Instruments behind the real queue of reads, with a broker whose answers the test gives. */
function opened() {
  const asked: { resolve(list: ListedInstrument[]): void; reject(error: Error): void }[] = [];
  const records: Pick<BrokerRecords, 'instruments'> = {
    instruments: () => new Promise((resolve, reject) => asked.push({ resolve, reject })),
  };
  const slots = { acquire: async () => ({ release: () => {} }) };
  const reads = new ReadQueue(firstBroker, slots as unknown as ConstructorParameters<typeof ReadQueue>[1], 20_000);
  return { asked, reads, instruments: new Instruments(records, reads) };
}

/** Lets everything go on that waits for nothing outside. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the list of instruments', () => {
  it('is read once for concurrent callers, whichever partners they are of', async () => {
    const { asked, reads, instruments } = opened();
    const origins = [ofOne, ofOne, ofOne, ofOther];
    const lists = Promise.all([...origins.map((each) => instruments.list(each)), instruments.listSoon(ofOne)]);
    await turn();
    assert.deepEqual([asked.length, reads.underWay, reads.waiting], [1, 2, 0]);
    asked[0]?.resolve(answer);
    assert.deepEqual(
      (await lists).map((list) => list?.map(({ symbol }) => symbol)),
      Array(5).fill(['MTNN']),
    );
  });

  it('is waited for a second at most by a check that goes on without it', async () => {
    const { asked, instruments } = opened();
    const began = performance.now();
    assert.equal(await instruments.listSoon(ofOne), undefined);
    const waitedMs = performance.now() - began;
    assert.ok(waitedMs >= 900 && waitedMs < patient(2_000), `${waitedMs}`);
    await Promise.all([instruments.listSoon(ofOne), turn().then(() => asked[0]?.resolve(answer))]);
    assert.equal(asked.length, 1, 'the read goes on, and the next caller waits for the same one');
    assert.equal((await instruments.listSoon(ofOne))?.length, 1);
  });

  it('is not waited for by such a check after a failed read, and is read again by a caller who needs it', async () => {
    const { asked, instruments } = opened();
    const first = instruments.listSoon(ofOne);
    await turn();
    asked[0]?.reject(away());
    assert.deepEqual([await first, await instruments.listSoon(ofOther)], [undefined, undefined]);
    assert.equal(asked.length, 1);
    const needed = instruments.list(ofOne);
    await turn();
    asked[1]?.resolve(answer);
    assert.equal((await needed).length, 1);
    assert.equal((await instruments.listSoon(ofOther))?.length, 1, 'a list that was read since is used');
  });

  it('does not hide an error that is none of the broker', async () => {
    const { asked, instruments } = opened();
    const first = instruments.listSoon(ofOne);
    await turn();
    asked[0]?.reject(new TypeError('a mistake'));
    await assert.rejects(first, TypeError);
  });

  it('a list of instruments is used for five seconds from when it was asked for, and read again after that, also after failures', async (t) => {
    let now = 1_000_000;
    t.mock.method(performance, 'now', () => now);
    const { asked, instruments } = opened();
    const first = instruments.list(ofOne);
    await turn();
    now += 3_000;
    asked[0]?.resolve(answer);
    await first;
    now += 1_999;
    await instruments.list(ofOne);
    assert.equal(asked.length, 1);
    now += 1;
    for (let failures = 1; failures <= 2; failures += 1) {
      const failing = instruments.list(ofOne);
      await turn();
      now += 1_000;
      asked[failures]?.reject(away());
      await assert.rejects(failing, /exchange_unavailable|cannot be reached|broker/);
      assert.equal(asked.length, 1 + failures, 'each caller who needs it asks anew');
    }
    now += 4_999;
    assert.equal(await instruments.listSoon(ofOther), undefined);
    assert.equal(asked.length, 3, 'a check that goes on without the list leaves the broker alone');
    now += 1;
    const soon = instruments.listSoon(ofOther);
    await turn();
    assert.equal(asked.length, 4);
    asked[3]?.resolve(answer);
    assert.equal((await soon)?.length, 1);
  });
});
