import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AccountDay } from '../../../../src/gateway/operators/reconciliation/account-day.ts';
import { movesOf, type OurMoney } from '../../../../src/gateway/operators/reconciliation/money-rules.ts';
import type { HoldingRecord } from '../../../../src/gateway/operators/reconciliation/rules.ts';
import {
  bookingMarginMs,
  compareTransactions,
  wrongOpening,
  wrongSums,
} from '../../../../src/gateway/operators/reconciliation/transaction-rules.ts';
import {
  type Transaction,
  TransactionSchema,
  TransactionType,
} from '../../../../src/gen/marina/broker/v1/accounts_pb.ts';

const dayMs = 86_400_000;
const from = Date.parse('2026-03-02T00:00:00+01:00');
const period = { from, to: from + dayMs };
const noon = from + dayMs / 2;
const until = period.to + 2 * bookingMarginMs;
const of = { account: 'ACC1', partnerId: 'par_a' };
const { WITHDRAWAL, WITHDRAWAL_RETURN, FEE, REVERSAL, ADJUSTMENT } = TransactionType;

function booked(
  id: string,
  amountKobo: bigint,
  more: MessageInitShape<typeof TransactionSchema> & { at?: number } = {},
) {
  const { at = noon, ...fields } = more;
  const bookedAt = timestampFromMs(at);
  return create(TransactionSchema, { id, amountKobo, type: WITHDRAWAL, ...fields, bookedAt } as never);
}

describe('two neighbours among the transactions of an account', () => {
  const chain = (...balances: readonly bigint[]): Transaction[] =>
    balances.map((balanceKobo, at) => booked(`T${9 - at}`, 10n, { balanceKobo, at: noon - at * 1_000 }));

  it('add up if the newer balance without its amount is the older balance', () => {
    assert.deepEqual(wrongSums(of, chain(30n, 20n, 10n), period), []);
    assert.deepEqual(wrongSums(of, chain(30n), period), []);
  });

  it('are one break that names both and the difference', () => {
    const [found, ...more] = wrongSums(of, chain(30n, 21n, 11n), period);
    assert.deepEqual([found?.kind, found?.account, found?.partnerId, more], ['transaction_sum', 'ACC1', 'par_a', []]);
    assert.equal(found?.ours, '20 kobo before T9: 30 after it, less its 10');
    assert.equal(found?.brokers, '21 kobo after T8: a difference of 1 kobo');
  });

  it('belong to the day on which the newer one was booked', () => {
    const pair = (newer: number, older: number) => [
      booked('T2', 10n, { balanceKobo: 30n, at: newer }),
      booked('T1', 10n, { balanceKobo: 21n, at: older }),
    ];
    const count = (newer: number, older: number) => wrongSums(of, pair(newer, older), period).length;
    assert.deepEqual([count(from, from - 1), count(from - 1, from - 2)], [1, 0]);
    assert.deepEqual([count(period.to - 1, noon), count(period.to, noon)], [1, 0]);
  });
});

describe('an opening balance', () => {
  const day = '2026-03-02';
  const both = [booked('T2', 5n, { balanceKobo: 25n }), booked('T1', 10n, { balanceKobo: 20n, at: from - 1 })];

  it('is right if it leads to the newest balance by the amounts of its day', () => {
    assert.deepEqual(wrongOpening(of, both, { openingKobo: 20n, days: [day] }), []);
    assert.deepEqual(wrongOpening(of, both, { openingKobo: 25n, days: ['2026-03-03'] }), []);
    assert.deepEqual(wrongOpening(of, [], { openingKobo: 25n, days: [day] }), []);
  });

  it('is a break otherwise, unless it may be of another day', () => {
    const [found] = wrongOpening(of, both, { openingKobo: 21n, days: [day] });
    assert.equal(found?.ours, '26 kobo: opening_kobo 21, and 5 by the amounts of 2026-03-02');
    assert.equal(found?.brokers, '25 kobo after T2: a difference of -1 kobo');
    assert.deepEqual(wrongOpening(of, both, { openingKobo: 25n, days: [day, '2026-03-03'] }), []);
  });
});

describe('the transactions of a withdrawal', () => {
  const amountKobo = 500n;
  const withdrawal = (...states: readonly (readonly [state: string, at: number | null])[]): OurMoney => ({
    ...{ account: 'ACC1', amountKobo, destination: 'wallet', reference: 'R', partnerId: 'par_a' },
    ...{ state: states.at(-1)?.[0] ?? 'refused', isUnsettled: false, isReported: true },
    moves: movesOf(
      amountKobo,
      states.map(([state, at]) => ({ state, at })),
    ),
  });
  const compare = (ours: OurMoney | undefined, ...named: readonly Transaction[]) =>
    compareTransactions(of, { kind: 'withdrawal', id: 'wdr_1' }, ours, named, { period, until }).map(
      ({ kind }) => kind,
    );
  const taken = booked('T1', -500n);
  const given = booked('T2', 500n, { type: WITHDRAWAL_RETURN });

  it('take its amount once, and give it back if it is rejected later or returned', () => {
    assert.deepEqual(compare(withdrawal(['processing', noon], ['completed', noon + 1]), taken), []);
    assert.deepEqual(compare(withdrawal(['completed', noon]), taken), []);
    assert.deepEqual(compare(withdrawal(['processing', noon], ['rejected', noon + 1]), given, taken), []);
    assert.deepEqual(compare(withdrawal(['rejected', noon])), []);
    assert.deepEqual(compare(withdrawal(['completed', noon], ['returned', noon + 1]), given, taken), []);
  });

  it('are a break if the amount is another, or there is none', () => {
    assert.deepEqual(compare(withdrawal(['completed', noon])), ['transaction_missing']);
    assert.deepEqual(compare(withdrawal(['completed', noon]), booked('T1', -501n)), ['transaction_terms']);
    assert.deepEqual(compare(withdrawal(['completed', noon]), taken, booked('T2', -500n)), ['transaction_terms']);
    assert.deepEqual(compare(withdrawal(['completed', noon], ['returned', noon + 1]), taken), ['transaction_terms']);
    assert.deepEqual(compare(withdrawal(['rejected', noon]), taken), ['transaction_terms']);
    assert.deepEqual(compare({ ...withdrawal(), isReported: false }, taken), ['transaction_terms'], 'it was refused');
  });

  it('are a break if the gateway does not have it, or has it on another account', () => {
    assert.deepEqual(compare(undefined, taken), ['transaction_extra']);
    assert.deepEqual(compare(undefined, booked('T1', -500n, { at: from - 1 })), [], 'that is the day before');
    assert.deepEqual(compare({ ...withdrawal(['completed', noon]), account: 'ACC2' }, taken), ['transaction_terms']);
    assert.deepEqual(compare({ ...withdrawal(['completed', noon]), account: 'ACC2' }), []);
  });

  it('may have fees, and corrections that lead to the amount', () => {
    const fee = booked('T2', -50n, { type: FEE });
    const feeBack = booked('T3', 50n, { type: REVERSAL });
    const reversed = booked('T4', 500n, { type: REVERSAL });
    assert.deepEqual(compare(withdrawal(['completed', noon]), fee, taken), []);
    assert.deepEqual(compare(withdrawal(['completed', noon], ['returned', noon]), feeBack, reversed, fee, taken), []);
    const corrected = [booked('T5', 1n, { type: ADJUSTMENT }), booked('T1', -501n)];
    assert.deepEqual(compare(withdrawal(['completed', noon]), ...corrected), []);
  });

  it('may be booked some minutes before or after the report, over midnight too', () => {
    const late = until - bookingMarginMs;
    assert.deepEqual(compare(withdrawal(['completed', noon], ['returned', late]), taken), [], 'the return comes yet');
    const early = booked('T1', -500n, { at: from - bookingMarginMs });
    assert.deepEqual(compare(withdrawal(['processing', from], ['completed', noon]), early), []);
    assert.deepEqual(compare(withdrawal(['processing', from - 1], ['completed', noon])), [], 'booked the day before');
    assert.deepEqual(compare(withdrawal(['processing', from - 1], ['completed', noon]), taken), []);
    assert.deepEqual(compare(withdrawal(['completed', null])), [], 'an operator settled it');
  });

  it('are not judged while the outcome is unknown, or on a day on which nothing happened to it', () => {
    assert.deepEqual(compare({ ...withdrawal(), state: 'uncertain', isUnsettled: true }, taken), []);
    assert.deepEqual(compare({ ...withdrawal(['completed', noon]), isReported: false }), []);
  });
});

describe('an account of a statement', () => {
  const blank = { account: 'A', symbol: '', side: '', state: '', quantity: 0n, amountKobo: null, otherKobo: null };
  const hasMoved = (hasDayBefore: boolean, ...records: readonly (Partial<HoldingRecord> & { objectId?: string })[]) => {
    const day = new AccountDay('A');
    for (const one of records) day.add({ ...blank, objectId: '', section: 'cash', ...one });
    return day.hasMoved(hasDayBefore);
  };

  it('has moved if anything changed its money', () => {
    for (const section of ['trade', 'allocation', 'withdrawal'] as const) assert.ok(hasMoved(true, { section }));
    assert.ok(hasMoved(false, { amountKobo: 5n, otherKobo: 5n }));
    assert.ok(hasMoved(true, { amountKobo: 5n, otherKobo: null }, { section: 'cash_before', amountKobo: 4n }));
    assert.ok(hasMoved(false, { amountKobo: 5n, otherKobo: null }), 'nobody says that it did not');
  });

  it('has not moved if its money is as on the day before', () => {
    const before = { section: 'cash_before', amountKobo: 5n } as const;
    assert.ok(!hasMoved(true, { amountKobo: 5n, otherKobo: 0n }, before));
    assert.ok(!hasMoved(true, { amountKobo: 5n, otherKobo: null }, before));
    assert.ok(!hasMoved(false, { amountKobo: 5n, otherKobo: 0n }));
    assert.ok(!hasMoved(true, { section: 'order' }, { section: 'note' }));
  });
});
