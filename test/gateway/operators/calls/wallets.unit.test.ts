/** How operators credit wallets, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { creditCall, walletService } from '../../../../src/gateway/operators/calls/wallets.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { maxInWalletKobo } from '../../../../src/gateway/trading/wallet/rules.ts';
import { toPayment, transfers, wallets } from '../../../../src/gateway/trading/wallet/store.ts';
import { CreditWalletRequestSchema } from '../../../../src/gen/marina/admin/v1/wallets_pb.ts';
import { RowsDatabase } from '../../../support/rows-database.ts';
import { anyRow } from '../../../support/stored-row.ts';

const request = create(CreditWalletRequestSchema, {
  ...{ partnerId: 'par_a', amountKobo: 100n, bankReference: 'ref 1', reason: 'paid' },
});
const paymentRow = (sequence: number, more: object = {}): SqlRow => ({
  ...anyRow(transfers, {
    ...{ partnerId: 'par_a', sequence: BigInt(sequence), id: `wtr_${sequence}`, type: 'credit', amountKobo: 100n },
    ...more,
  } as never),
  ...{ reversed_kobo: '30', credit_bank_reference: null },
});

function work({ aboveKobo = 1_000n as bigint | undefined, rows = [] as SqlRow[] } = {}) {
  const recorded: bigint[] = [];
  const transaction = async (reads: readonly Statement[], decide: (found: SqlRow[][]) => { result: unknown }) =>
    decide(reads.map(() => rows)).result;
  const parts = {
    database: { transaction },
    ids: { object: () => 'wtr_new' },
    fourEyesAboveKobo: aboveKobo,
    clock: { now: () => 1 },
  };
  const { asked, name } = creditCall(parts as never, {} as never, (kobo) => void recorded.push(kobo));
  return { ...asked(request), name, recorded };
}

/** Decides on a credit of 100 kobo. */
function decide(head: object, aloneKobo = 0n, prior?: SqlRow, aboveKobo: bigint | undefined = 1_000n) {
  const partner = { get: () => ({ head: { availableKobo: 0n, reservedKobo: 0n, postedKobo: 0n, ...head } }) };
  const facts = { prior: prior && toPayment(prior), aloneKobo };
  return work({ aboveKobo }).decide(facts as never, partner as never);
}

describe('a credit of a wallet', () => {
  it('a credit needs a second operator if it and those of the day are above the amount together', () => {
    for (const [aloneKobo, aboveKobo, needsSecond] of [
      [0n, 100n, false],
      [0n, 99n, true],
      [900n, 1_000n, false],
      [901n, 1_000n, true],
    ] as const) {
      const decided = decide({}, aloneKobo, undefined, aboveKobo);
      assert.equal('needsSecond' in decided && decided.needsSecond, needsSecond, `${aloneKobo} of ${aboveKobo}`);
    }
  });

  it('a wallet holds so much at most, with what is reserved and posted', () => {
    for (const head of [{ availableKobo: 1n }, { reservedKobo: 1n }, { postedKobo: 1n }]) {
      const [[name]] = Object.entries(head) as [[string, bigint]];
      assert.ok('needsSecond' in decide({ [name]: maxInWalletKobo - 100n }), name);
      assert.throws(() => decide({ [name]: maxInWalletKobo - 99n }), { status: status.FAILED_PRECONDITION }, name);
    }
  });

  it('a bank reference is credited once: the same credit is answered again, and another one is refused', () => {
    const decided = decide({}, 0n, paymentRow(3));
    assert.ok('unchanged' in decided);
    const { recorded, payment } = decided.unchanged;
    assert.deepEqual([recorded, payment.entry.id, payment.reversedKobo], [false, 'wtr_3', 30n]);
    for (const more of [{ partnerId: 'par_b' }, { amountKobo: 101n }]) {
      assert.throws(() => decide({}, 0n, paymentRow(3, more)), { status: status.ALREADY_EXISTS });
    }
  });

  it('a credit that was recorded is counted, and one that was there is not', () => {
    const { ended, recorded } = work();
    ended?.({ recorded: false } as never);
    ended?.(undefined as never);
    assert.deepEqual(recorded, []);
    ended?.({ recorded: true } as never);
    assert.deepEqual(recorded, [100n]);
  });

  it("a credit that another partner's overtook is refused, and any other failure is told", async () => {
    const duplicate = Object.assign(new Error('duplicate'), { errno: 1062 });
    const { failed } = work({ rows: [paymentRow(3, { partnerId: 'par_b' })] });
    await assert.rejects(failed?.(duplicate) as Promise<unknown>, { status: status.ALREADY_EXISTS });
    await assert.rejects(work().failed?.(duplicate) as Promise<unknown>, duplicate);
    const other = new Error('gone');
    await assert.rejects(failed?.(other) as Promise<unknown>, other);
    const same = work({ rows: [paymentRow(3)] });
    assert.equal(((await same.failed?.(duplicate)) as { recorded: boolean } | undefined)?.recorded, false);
  });
});

describe('lists of money', () => {
  const stored = {
    partners: [{ id: 'par_a' }],
    wallets: ['par_a', 'par_b', 'par_c'].map((partnerId) => anyRow(wallets, { partnerId })),
  };
  const rows = [1, 2, 3].map((sequence) => paymentRow(sequence, { availableAfterKobo: BigInt(sequence) * 7n }));
  const database = new RowsDatabase(stored, ({ sql, values }) => {
    if (!sql.includes('wallet_transfers')) return undefined;
    const [partnerId, type, before] = values as [string, string, string | undefined];
    assert.deepEqual([partnerId, type], ['par_a', 'credit']);
    const most = Number(/LIMIT (\d+)$/.exec(sql)?.[1]);
    return rows
      .filter((row) => Number(row.sequence) < Number(before ?? 99))
      .toReversed()
      .slice(0, most);
  });
  const { calls } = walletService({ database } as never, {} as never, {
    credited: () => {},
    corrected: () => {},
  }).service;
  const make = (name: string, asked: object) =>
    (calls[name] as (asked: object) => Promise<Record<string, unknown>>)({ limit: 0, ...asked });

  it("a partner's credits are listed newest first, with what was reversed and what was available after each", async () => {
    const { credits, hasMore } = await make('listCredits', { partnerId: 'par_a', beforeSequence: 0n, limit: 2 });
    assert.deepEqual(
      (credits as Record<string, unknown>[]).map(({ id, reversedKobo, availableAfterKobo }) => [
        id,
        reversedKobo,
        availableAfterKobo,
      ]),
      [
        ['wtr_3', 30n, 21n],
        ['wtr_2', 30n, 14n],
      ],
    );
    assert.equal(hasMore, true);
    const rest = await make('listCredits', { partnerId: 'par_a', beforeSequence: 2n });
    assert.deepEqual([(rest.credits as unknown[]).length, rest.hasMore], [1, false]);
    await assert.rejects(make('listCredits', { partnerId: 'par_x', beforeSequence: 0n }), { status: status.NOT_FOUND });
  });

  it('wallets are listed in the order of their partners', async () => {
    const ids = async (asked: object) => {
      const { wallets: found, hasMore } = await make('listWallets', { afterPartnerId: '', ...asked });
      return [(found as { partnerId: string }[]).map(({ partnerId }) => partnerId), hasMore];
    };
    assert.deepEqual(await ids({}), [['par_a', 'par_b', 'par_c'], false]);
    assert.deepEqual(await ids({ limit: 2 }), [['par_a', 'par_b'], true]);
    assert.deepEqual(await ids({ limit: 2, afterPartnerId: 'par_b' }), [['par_c'], false]);
  });
});
