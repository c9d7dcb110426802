import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { compileEncoder } from '../../../src/gateway/edge/json/encoder.ts';
import { parse } from '../../../src/gateway/edge/limits/counter-store.ts';
import { bucketFrom } from '../../../src/gateway/edge/limits/shared-buckets.ts';
import {
  toContractNoteMessage,
  toStatusMessage,
  toTradeMessage,
  toTransactionMessage,
} from '../../../src/gateway/trading/accounts/handlers.ts';
import { allocationStates, countedKobo as valueOfAllocation } from '../../../src/gateway/trading/allocations/rules.ts';
import { isAccountStatus, isTradesPage, isTransactionsPage } from '../../../src/gateway/trading/broker/records.ts';
import {
  applyReport,
  countedKobo,
  type OrderFacts,
  type OrderStateName,
  orderStates,
} from '../../../src/gateway/trading/orders/rules.ts';
import { isUnsettled } from '../../../src/gateway/trading/submission/rules.ts';
import {
  AccountActivity,
  type AccountRestrictionCode,
  type AccountState,
  ContractNoteSchema,
  GetAccountStatusResponseSchema,
  ListTradesResponseSchema,
  ListTransactionsResponseSchema,
  TransactionType,
} from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { ReportKind, ReportSchema, Side } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  AccountStatusSchema,
  AccountTransactionSchema,
  TradeSchema,
  TradeSide,
} from '../../../src/gen/marina/gateway/v1/accounts_pb.ts';
import { OrderState, OrderStateSchema } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { type EnumName, enumWords, logUnknownNames, translateEnum } from '../../../src/kit/enums.ts';
import { createLogger } from '../../../src/kit/log.ts';

const onHold = 'on_hold' as OrderStateName;

describe('names of another version', () => {
  it('are logged once each, and no more than 100 in a process', () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const stop = logUnknownNames(createLogger({ name: 'test', level: 'info', destination }));
    const words = enumWords<typeof OrderState>(OrderStateSchema);
    for (let round = 0; round < 3; round += 1) {
      for (let name = 0; name < 200; name += 1) assert.equal(words.value(`state_${name}${'x'.repeat(100)}`), 0);
    }
    stop();
    words.value('after the end');
    assert.equal(lines.length, 100);
    assert.ok(lines.every((line) => line.length < 400));
    assert.match(lines.at(-1) ?? '', /"isLast":true/);
  });

  it('names of a state are neither final nor unclear, and count whole', () => {
    assert.deepEqual([orderStates.isFinal(onHold), isUnsettled(onHold)], [false, false]);
    const order = { state: onHold, quantity: 5n, filledQuantity: 1n, countedPriceKobo: 100n } as OrderFacts;
    assert.equal(countedKobo(order), 500n);
    assert.equal(allocationStates.isFinal('in_review' as 'sending'), false);
    assert.equal(valueOfAllocation({ state: 'in_review' as 'sending', amountKobo: 7n }), 7n);
  });
});

describe('a name that this version forgot', () => {
  it('does not compile: a table needs a row for each', () => {
    const rows = { buy: 'Buys.', sell: 'Sells.' } satisfies Record<EnumName<typeof Side>, string>;
    // @ts-expect-error `sell` has no row.
    const forgotten = { buy: 'Buys.' } satisfies Record<EnumName<typeof Side>, string>;
    assert.notDeepEqual(rows, forgotten);
  });

  it('does not compile: an enumeration is translated to one that has all its names', () => {
    const side = translateEnum(Side, TradeSide);
    assert.deepEqual([side(Side.BUY), side(Side.SELL)], [TradeSide.BUY, TradeSide.SELL]);
    // @ts-expect-error the states of an order are no sides.
    translateEnum(Side, OrderState);
  });
});

describe("a later broker's numbers", () => {
  it('are translated to none, as if nothing was said', () => {
    const side = translateEnum(Side, TradeSide);
    assert.deepEqual([side(9 as Side), side(Side.UNSPECIFIED), side(undefined)], [0, 0, 0]);
  });

  it('numbers of a side are no reason to refuse a page of trades', () => {
    const trade = {
      id: 'T-1',
      symbol: 'GTCO',
      side: 9 as Side,
      quantity: 2n,
      priceKobo: 3n,
      amountKobo: 6n,
      executedAt: { seconds: 1_795_194_753n },
    };
    const page = create(ListTradesResponseSchema, { account: 'A1', inRange: 1, trades: [trade] });
    const range = { account: 'A1', from: '2026-01-01', to: '2026-12-31', after: undefined, limit: 25 };
    assert.equal(isTradesPage(page, range), true);
    const [first] = page.trades;
    assert.ok(first !== undefined);
    const message = toTradeMessage('A1', first);
    assert.equal(message.side, TradeSide.UNSPECIFIED);
    assert.equal(JSON.parse(compileEncoder(TradeSchema)(message)).side, 'unspecified');
    const note = toContractNoteMessage(create(ContractNoteSchema, { side: 9 as Side }));
    assert.equal(note.side, TradeSide.UNSPECIFIED);
    const sideless = { ...trade, side: Side.UNSPECIFIED };
    const none = create(ListTradesResponseSchema, { account: 'A1', inRange: 1, trades: [sideless] });
    assert.equal(isTradesPage(none, range), false, 'no side at all makes no sense');
  });

  it('numbers of a type of transaction are shown as unspecified, and the page is believed', () => {
    const transaction = {
      id: 'T-1',
      type: 99 as TransactionType,
      amountKobo: 1n,
      bookedAt: { seconds: 1_795_194_753n },
    };
    const page = create(ListTransactionsResponseSchema, { account: 'A1', inRange: 1, transactions: [transaction] });
    const range = { account: 'A1', from: '2026-01-01', to: '2026-12-31', after: undefined, limit: 25 };
    assert.equal(isTransactionsPage(page, { ...range, type: TransactionType.UNSPECIFIED }), true);
    const [first] = page.transactions;
    assert.ok(first !== undefined);
    const shown = JSON.parse(compileEncoder(AccountTransactionSchema)(toTransactionMessage('A1', first)));
    assert.equal(shown.type, 'unspecified');
  });

  it('numbers of an account status are shown as unspecified beside those that are known', () => {
    const restriction = { code: 99 as AccountRestrictionCode, forbids: [AccountActivity.BUY, 99 as AccountActivity] };
    const answer = create(GetAccountStatusResponseSchema, {
      account: 'A1',
      state: 99 as AccountState,
      restrictions: [restriction],
    });
    assert.equal(isAccountStatus(answer, 'A1'), true);
    const shown = JSON.parse(compileEncoder(AccountStatusSchema)(toStatusMessage(answer)));
    assert.deepEqual(
      [shown.state, shown.restrictions],
      ['unspecified', [{ code: 'unspecified', forbids: ['buy', 'unspecified'], since: null }]],
    );
  });

  it('numbers of a report keep the state, and the next report is applied', () => {
    const order: OrderFacts = {
      state: 'pending',
      quantity: 5n,
      filledQuantity: 0n,
      filledValueKobo: 0n,
      filledAt: null,
      exchangeOrderId: null,
      reason: null,
      rejectReason: null,
      countedPriceKobo: 100n,
      lastReport: 1n,
      updatedAt: 0,
    };
    const amended = create(ReportSchema, { number: 2n, kind: 77 as ReportKind, at: { seconds: 1n } });
    const applied = applyReport(order, amended, 1);
    assert.deepEqual([applied?.inconsistent, applied?.row.state], [true, 'pending']);
    const trade = { number: 3n, kind: ReportKind.TRADE, quantity: 5n, priceKobo: 100n };
    assert.equal(applyReport(applied?.row ?? order, create(ReportSchema, trade), 2)?.row.state, 'filled');
  });
});

describe('what another version wrote in the shared counter store', () => {
  it('a value that this version cannot read counts as nothing', () => {
    for (const text of ['', 'v2;level=3', '{"level":1', '[]', 'null', '{"v":2}']) {
      assert.equal(bucketFrom(parse(text), { atLeast: 0, atMost: 0 }), undefined, text);
    }
  });
});
