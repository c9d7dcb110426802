/** Which stops an account's export shows, by when each was in force. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { stopLines } from '../../../../../src/gateway/operators/calls/account-export/stops.ts';
import type { Statement } from '../../../../../src/gateway/store/statement.ts';
import { type StoredStop, stops } from '../../../../../src/gateway/trading/stops/table.ts';
import { storedRow } from '../../../../support/stored-row.ts';

const [from, until] = [1_000_000, 2_000_000];
const days = { first: '', last: '', from, until };
const link = { partnerId: 'par_a', application: null, linkedBy: null, unlinkedBy: null };
const links = [{ ...link, from: null, until: 1_500_000 }];

/** Whether a stop is shown, in force from an instant on. */
async function isShown(stop: Pick<StoredStop, 'startedAt'> & Partial<StoredStop>): Promise<boolean> {
  const row = storedRow(stops, {
    ...{ id: 'stp_a', partnerId: null, target: 'everything', value: '', actions: 'buy', reason: 'a test' },
    ...{ startedBy: 'ada', endsAt: null, endedAt: null, endedBy: null, endReason: null },
    ...stop,
  });
  const isEnded = stop.endedAt !== undefined && stop.endedAt !== null;
  const read = async ({ sql }: Statement) => (sql.includes('ended_at IS NULL') === isEnded ? [] : [row]);
  const lines: object[] = [];
  for await (const page of stopLines({ read } as never, 'A1', links, days)) lines.push(...page);
  assert.ok(lines.length <= 1);
  return lines.length === 1;
}

it('a stop is shown if it was in force on one of the days, whether it was ended or its time was over', async () => {
  for (const [startedAt, end, shown] of [
    [0, from, false],
    [0, from + 1, true],
    [from, until, true],
    [until - 1, until + 1, true],
    [until, until + 1, false],
  ] as const) {
    assert.equal(await isShown({ startedAt, endedAt: end }), shown, `ended, ${startedAt} to ${end}`);
    assert.equal(await isShown({ startedAt, endsAt: end }), shown, `its time is over, ${startedAt} to ${end}`);
    assert.equal(await isShown({ startedAt, endsAt: end, endedAt: until + 5 }), shown, 'stored as ended later');
    assert.equal(await isShown({ startedAt, endsAt: until + 5, endedAt: end }), shown, 'ended before its time');
  }
  assert.ok(await isShown({ startedAt: 0 }), 'still in force');
  assert.ok(!(await isShown({ startedAt: until })), 'not yet');
});

it('a stop of an account or of a partner is shown for the account, as long as the partner had it', async () => {
  const ofPartner = (startedAt: number, value = 'par_a') => isShown({ startedAt, target: 'partner', value });
  assert.ok(await ofPartner(1_499_999));
  assert.ok(!(await ofPartner(1_500_000)), 'the partner has the account no more');
  assert.ok(!(await ofPartner(0, 'par_b')));
  assert.ok(await isShown({ startedAt: 0, target: 'account', value: 'A1' }));
  assert.ok(!(await isShown({ startedAt: 0, target: 'account', value: 'A2' })));
});
