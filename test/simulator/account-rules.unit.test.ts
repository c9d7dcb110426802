/** The rights of accounts of the simulated broker, and the sales that it pays out itself. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AccountActivity, AccountRestrictionCode, AccountState } from '../../src/gen/marina/broker/v1/accounts_pb.ts';
import { RejectReason, Side } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  forbids,
  orderForbidden,
  restrictionsFrom,
  stateOf,
  statusMessage,
} from '../../src/simulator/clearing/account-states.ts';
import { DirectSales } from '../../src/simulator/clearing/direct-sales.ts';
import { fc } from '../support/properties.ts';

const { BUY, SELL } = AccountActivity;
const { SETTLEMENT_LOCKOUT } = AccountRestrictionCode;
const other = Object.values(AccountRestrictionCode).find(
  (code): code is AccountRestrictionCode =>
    typeof code === 'number' && code !== SETTLEMENT_LOCKOUT && code !== AccountRestrictionCode.UNSPECIFIED,
) as AccountRestrictionCode;

describe('an account of the simulated broker', () => {
  it('an account of the simulated broker is restricted by what was set, by what it owes, or by both, and a closed one stays closed', () => {
    const set = (state: AccountState, count: number) => ({
      state,
      restrictions: Array(count).fill({ code: other, forbids: [BUY], sinceMs: 5 }),
    });
    for (const [given, isLocked, state, restrictions] of [
      [undefined, false, AccountState.ACTIVE, 0],
      [undefined, true, AccountState.RESTRICTED, 1],
      [set(AccountState.ACTIVE, 0), true, AccountState.RESTRICTED, 1],
      [set(AccountState.RESTRICTED, 1), false, AccountState.RESTRICTED, 1],
      [set(AccountState.RESTRICTED, 1), true, AccountState.RESTRICTED, 2],
      [set(AccountState.CLOSED, 0), true, AccountState.CLOSED, 1],
      [set(AccountState.CLOSED, 0), false, AccountState.CLOSED, 0],
    ] as const) {
      const found = stateOf(given as never, isLocked);
      assert.deepEqual([found.state, found.restrictions.length], [state, restrictions]);
    }
  });

  it('an account of the simulated broker is refused what its restrictions forbid, with the reason of the lockout only where that forbids it', () => {
    const account = (state: AccountState, ...restrictions: [AccountRestrictionCode, AccountActivity[]][]) => ({
      state,
      restrictions: restrictions.map(([code, forbids]) => ({ code, forbids })),
    });
    const { ACTIVE, RESTRICTED, CLOSED } = AccountState;
    const cases = [
      [account(ACTIVE), undefined, undefined],
      [account(CLOSED), RejectReason.REJECTED_BY_EXCHANGE, RejectReason.REJECTED_BY_EXCHANGE],
      [account(RESTRICTED, [other, [BUY]]), RejectReason.REJECTED_BY_EXCHANGE, undefined],
      [account(RESTRICTED, [other, [SELL]]), undefined, RejectReason.REJECTED_BY_EXCHANGE],
      [
        account(RESTRICTED, [SETTLEMENT_LOCKOUT, [BUY, SELL]]),
        RejectReason.SETTLEMENT_LOCKOUT,
        RejectReason.SETTLEMENT_LOCKOUT,
      ],
      [
        account(RESTRICTED, [SETTLEMENT_LOCKOUT, [BUY]], [other, [SELL]]),
        RejectReason.SETTLEMENT_LOCKOUT,
        RejectReason.REJECTED_BY_EXCHANGE,
      ],
      [
        account(CLOSED, [SETTLEMENT_LOCKOUT, [BUY, SELL]]),
        RejectReason.REJECTED_BY_EXCHANGE,
        RejectReason.REJECTED_BY_EXCHANGE,
      ],
    ] as const;
    for (const [given, buy, sell] of cases) {
      assert.deepEqual([orderForbidden(given, Side.BUY), orderForbidden(given, Side.SELL)], [buy, sell]);
      assert.deepEqual([forbids(given, BUY), forbids(given, SELL)], [buy !== undefined, sell !== undefined]);
    }
  });

  it('an account of the simulated broker takes restrictions that go with its state, each of a known kind, and since now unless a time is given', () => {
    const { ACTIVE, RESTRICTED, CLOSED, UNSPECIFIED } = AccountState;
    const one = (more: object = {}) => ({ code: other, forbids: [BUY], ...more }) as never;
    assert.deepEqual(restrictionsFrom(ACTIVE, [], 9), []);
    assert.deepEqual(restrictionsFrom(CLOSED, [], 9), []);
    assert.deepEqual(restrictionsFrom(RESTRICTED, [one(), one({ since: timestampFromMs(4) })], 9), [
      { code: other, forbids: [BUY], sinceMs: 9 },
      { code: other, forbids: [BUY], sinceMs: 4 },
    ]);
    assert.equal(restrictionsFrom(RESTRICTED, Array(100).fill(one()), 9).length, 100);
    for (const [state, ...restrictions] of [
      [UNSPECIFIED],
      [ACTIVE, one()],
      [RESTRICTED],
      [RESTRICTED, ...Array(101).fill(one())],
      [RESTRICTED, one({ code: AccountRestrictionCode.UNSPECIFIED })],
      [RESTRICTED, one({ code: 99 })],
      [RESTRICTED, one({ forbids: [] })],
      [RESTRICTED, one({ forbids: [BUY, BUY] })],
      [RESTRICTED, one({ forbids: [AccountActivity.UNSPECIFIED] })],
      [RESTRICTED, one({ forbids: [99] })],
    ] as [AccountState, ...never[]][]) {
      assert.throws(() => restrictionsFrom(state, restrictions, 9), `${state} ${restrictions.length}`);
    }
  });

  it('an account of the simulated broker has a status with the start of each restriction that has one, and a number and initials of its own', () => {
    const restrictions = [
      { code: other, forbids: [BUY], sinceMs: 0 },
      { code: SETTLEMENT_LOCKOUT, forbids: [BUY, SELL] },
    ];
    const status = statusMessage('ACC1', { state: AccountState.RESTRICTED, restrictions }, 7);
    assert.deepEqual(
      status.restrictions?.map(({ since }) => since),
      [timestampFromMs(0), undefined],
    );
    assert.match(`${status.chn} ${status.holderInitials}`, /^C\d{10} [A-Z]\. [A-Z]\.$/);
    assert.notEqual(statusMessage('ACC2', { state: AccountState.ACTIVE, restrictions: [] }, 7).chn, status.chn);
  });
});

describe('the sales that the simulated broker pays out itself', () => {
  it('the sales that the simulated broker pays out itself are those of sellers while it is set, with proceeds', () => {
    const sales = new DirectSales();
    const deal = { number: 1, account: 'A', side: Side.SELL, considerationKobo: 5n, settlementDate: '2026-11-25' };
    assert.equal(sales.book(deal as never), false);
    sales.isOn = true;
    assert.equal(sales.book({ ...deal, side: Side.BUY } as never), false);
    assert.equal(sales.book({ ...deal, considerationKobo: 0n } as never), false);
    assert.equal(sales.hasSettled('2026-12-31'), false);
    assert.equal(sales.book({ ...deal, considerationKobo: 1n } as never), true);
    assert.equal(sales.hasSettled('2026-11-24'), false);
    assert.equal(sales.hasSettled('2026-11-25'), true);
  });

  it('the sales that the simulated broker pays out itself are paid out once each, on the day on which they settle, whatever is settled earlier by hand', () => {
    const day = fc.integer({ min: 1, max: 9 }).map((number) => `2026-11-0${number}`);
    const account = fc.constantFrom('A', 'B');
    const step = fc.oneof(
      fc.record({ kind: fc.constant('book' as const), account, day, kobo: fc.bigInt({ min: 1n, max: 9n }) }),
      fc.record({ kind: fc.constant('settle' as const), account: fc.constantFrom('A', 'B', ''), day }),
      fc.record({ kind: fc.constant('take' as const), day }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const sales = new DirectSales();
        sales.isOn = true;
        let model: { deal: number; account: string; kobo: bigint; settlementDate: string }[] = [];
        for (const [at, each] of steps.entries()) {
          if (each.kind === 'book') {
            const sale = { deal: at, account: each.account, kobo: each.kobo, settlementDate: each.day };
            model.push(sale);
            const { deal: number, kobo: considerationKobo, ...rest } = sale;
            sales.book({ number, considerationKobo, side: Side.SELL, ...rest } as never);
          } else if (each.kind === 'settle') {
            for (const sale of model) {
              const isMeant = each.account === '' || sale.account === each.account;
              if (isMeant && sale.settlementDate > each.day) sale.settlementDate = each.day;
            }
            sales.settle(each.account, each.day);
          } else {
            const due = model.filter(({ settlementDate }) => settlementDate <= each.day);
            for (const name of ['A', 'B']) {
              const kobo = due.reduce((sum, sale) => (sale.account === name ? sum + sale.kobo : sum), 0n);
              assert.equal(sales.settledKobo(name, each.day), kobo);
            }
            assert.deepEqual(sales.takeSettled(each.day), due);
            assert.equal(sales.hasSettled(each.day), false);
            model = model.filter((sale) => !due.includes(sale));
          }
        }
      }),
    );
  });
});
