import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { IdMaker } from '../../../../../src/gateway/edge/ids.ts';
import { sharedFact } from '../../../../../src/gateway/store/facts.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import {
  orderSteps,
  orders,
  type StoredOrder,
  type StoredStep,
} from '../../../../../src/gateway/trading/orders/table.ts';
import type { Transfer } from '../../../../../src/gateway/trading/wallet/rules.ts';
import { transfer, wallet } from '../../../../../src/gateway/trading/wallet/store.ts';
import { daysAfter, lagosDay } from '../../../../../src/kit/clock.ts';
import { groupBy } from '../../../../../src/kit/group.ts';
import type { TestGateway, TestPartner } from '../../../../support/gateway.ts';
import { walletSeals } from '../../../../support/ledger.ts';
import { type Found, TestOperator } from '../../../../support/operator.ts';
import { csvOf, filledOrder, reported } from '../../../../support/reports.ts';

const dayMs = 86_400_000;
const firstDay = '2026-03-02';
/** Midnight in Lagos. */
const monday = Date.parse(`${firstDay}T00:00:00+01:00`);
const days = Array.from({ length: 5 }, (_, at) => daysAfter(firstDay, at));
const page = 200;

/** Numbers that are the same in each run. */
function numbers(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

const big = (value: unknown) => BigInt(String(value ?? 0));
const sum = (values: readonly unknown[]) => values.reduce((all: bigint, value) => all + big(value), 0n);

describe('reports of money', () => {
  let operator: TestOperator;
  let gateway: TestGateway;
  let partners: TestPartner[];
  before(async () => {
    operator = await TestOperator.start();
    gateway = operator.gateway;
    partners = [await gateway.newPartner(), await gateway.newPartner(), await gateway.newPartner()];
    partners.sort((one, other) => (one.id < other.id ? -1 : 1));
  });
  // The test writes orders and entries itself, which nobody placed and which belong to no allocation.
  after(() => operator.stop(['feed', 'objects', 'contradictions', 'usage', 'exchange', 'ledgers']));

  const partnerId = (index: number) => partners[index]?.id ?? '';
  const ledger = (request: JsonObject): Promise<Found[]> => reported(operator, 'ExportLedger', 'lines', request);
  const figures = (request: JsonObject): Promise<Found[]> =>
    reported(operator, 'ExportPartnerFigures', 'figures', request);

  /** Appends entries to a partner's ledger. */
  async function append(
    partner: string,
    entries: readonly (Partial<Transfer> & Pick<Transfer, 'type' | 'createdAt'>)[],
  ) {
    const seals = walletSeals();
    await gateway.database.inPartnerTransaction(partner, {
      touches: [],
      fact: sharedFact(wallet(partner, seals)),
      decide: (_, change) => {
        for (const { type, createdAt, ...more } of entries) {
          const id = new IdMaker({ now: () => createdAt }).object('wtr');
          const isCredit = type === 'credit';
          const given = { id, amountKobo: 1_000n, account: type === 'post' ? 'A1' : null, createdAt };
          const about = {
            allocation: isCredit ? null : new IdMaker({ now: () => createdAt }).object('alc'),
            bankReference: isCredit ? randomUUID() : null,
          };
          transfer(change, { ...given, ...about, type, ...more }, seals);
        }
        return { writes: [], result: undefined };
      },
    });
  }

  it('a ledger of a day adds up: opening, entries, closing, and the next day goes on there', async () => {
    const random = numbers(7);
    for (const partner of [partnerId(0), partnerId(1)]) {
      const entries: (Partial<Transfer> & Pick<Transfer, 'type' | 'createdAt'>)[] = [];
      let [available, reserved] = [0n, 0n];
      for (let at = monday - 3_600_000; at < monday + 5 * dayMs; at += random(dayMs / 30)) {
        const amountKobo = BigInt(1 + random(10_000));
        // Replicas' clocks differ a little, so instants are not always in the order of the ledger.
        const createdAt = at + random(3_000) - 1_500;
        const kind = random(4);
        if (kind === 1 && available >= amountKobo) {
          entries.push({ type: 'reserve', createdAt, amountKobo });
          [available, reserved] = [available - amountKobo, reserved + amountKobo];
        } else if (kind > 1 && reserved >= amountKobo) {
          entries.push({ type: kind === 2 ? 'post' : 'return', createdAt, amountKobo });
          if (kind === 3) available += amountKobo;
          reserved -= amountKobo;
        } else {
          entries.push({ type: 'credit', createdAt, amountKobo });
          available += amountKobo;
        }
      }
      await append(partner, entries);
    }
    const sumNames = ['available', 'reserved', 'posted'] as const;
    const closings = new Map<string, readonly bigint[]>();
    const seen = new Map<string, number>();
    for (const day of [daysAfter(firstDay, -1), ...days, daysAfter(firstDay, 5)]) {
      const lines = await ledger({ from_day: day });
      for (const partner of [partnerId(0), partnerId(1)]) {
        const own = lines.filter(({ partner_id }) => partner_id === partner);
        const [opening, closing] = [own[0], own.at(-1)];
        assert.deepEqual([opening.kind, closing.kind], ['LEDGER_LINE_KIND_OPENING', 'LEDGER_LINE_KIND_CLOSING']);
        const entries = own.slice(1, -1);
        const sums = (line: Found) => sumNames.map((name) => big(line[`${name}_kobo`]));
        const changes = sumNames.map((name) => sum(entries.map((entry) => entry[`${name}_change_kobo`])));
        assert.deepEqual(
          sums(opening).map((before, at) => before + (changes[at] ?? 0n)),
          sums(closing),
        );
        assert.deepEqual(
          sums(opening),
          closings.get(partner) ?? [0n, 0n, 0n],
          `${day} goes on where the day before ends`,
        );
        closings.set(partner, sums(closing));
        for (const { sequence, at } of entries) {
          const before = seen.get(partner) ?? 0;
          assert.equal(Number(sequence), before + 1, 'each entry is in one day');
          seen.set(partner, before + 1);
          const away = Math.abs(Date.parse(at) - Date.parse(`${day}T12:00:00+01:00`));
          assert.ok(away <= dayMs / 2 + 3_000, `${at} is of ${day}`);
        }
        const [report] = await figures({ from_day: day, partner_id: partner });
        const byType = groupBy(entries, ({ type }) => type.replace('WALLET_TRANSFER_TYPE_', '').toLowerCase());
        assert.deepEqual(
          (report?.wallet?.entries ?? []).map((each: Found) => [each.type, each.count, each.amount_kobo_decimal]),
          [...byType]
            .map(([type, some]) => [type, `${some.length}`, `${sum(some.map(({ amount_kobo }) => amount_kobo))}`])
            .sort(),
        );
        if (report?.wallet !== undefined) {
          assert.deepEqual([sums(report.wallet.opening), sums(report.wallet.closing)], [sums(opening), sums(closing)]);
        }
      }
      assert.ok(!lines.some(({ partner_id }) => partner_id === partnerId(2)), 'it has no ledger');
    }
    const { wallets } = await operator.call('Wallets.ListWallets');
    for (const { partner_id, available_kobo, reserved_kobo, posted_kobo, last_sequence } of wallets) {
      assert.deepEqual(closings.get(partner_id), [available_kobo, reserved_kobo, posted_kobo].map(big));
      assert.equal(seen.get(partner_id), Number(last_sequence));
    }
    const csv = await csvOf(operator, 'ExportLedger', { from_day: firstDay, to_day: days.at(-1) ?? '' });
    assert.match(csv[0] ?? '', /^par_\w+,opening,(,)+\d+,\d+,\d+,,,,$/);
    assert.match(csv[1] ?? '', /^par_\w+,entry,\d+,2026-03-0\dT[\d:.]+Z,wtr_\w+,\w+,\d+,-?\d+,/);
  });

  it('a ledger has the entries at the first and the last instant of a day, whether they fill a page or one more', async () => {
    const partner = partnerId(2);
    const at = (day: number, ms: number) => monday + day * dayMs + ms;
    const credits = (count: number, createdAt: number) =>
      Array.from({ length: count }, () => ({ type: 'credit' as const, createdAt }));
    await append(partner, [
      ...credits(1, at(0, -1)),
      ...credits(page, at(0, 0)),
      ...credits(1, at(1, 0)),
      ...credits(page, at(2, -1)),
      ...credits(1, at(2, 0)),
    ]);
    const countOf = async (day: string) =>
      (await ledger({ from_day: day, partner_id: partner })).filter(({ kind }) => kind === 'LEDGER_LINE_KIND_ENTRY')
        .length;
    const counts = [];
    for (const day of [daysAfter(firstDay, -1), ...days.slice(0, 4)]) counts.push(await countOf(day));
    assert.deepEqual(counts, [1, page, page + 1, 1, 0]);
    const [quiet] = await figures({ from_day: days[3] ?? '', partner_id: partner });
    assert.deepEqual(
      [quiet.wallet.opening.available_kobo, quiet.wallet.entries ?? [], quiet.wallet.closing.last_sequence],
      [String(1_000 * (2 * page + 3)), [], String(2 * page + 3)],
    );
  });

  it('a day of a ledger begins with the first entry after midnight, also if entries behind it are a moment older', async () => {
    const partner = await gateway.newPartner();
    const credits = (count: number, ms: number) =>
      Array.from({ length: count }, () => ({ type: 'credit' as const, createdAt: monday + ms }));
    await append(partner.id, [
      ...credits(5, -3_600_000),
      ...credits(1, 500),
      ...credits(20, -200),
      ...credits(14, 3_600_000),
    ]);
    const sequencesOf = async (day: string) =>
      (await ledger({ from_day: day, partner_id: partner.id })).flatMap(({ sequence }) => sequence ?? []).map(Number);
    assert.deepEqual(await sequencesOf(daysAfter(firstDay, -1)), [1, 2, 3, 4, 5]);
    const [first, ...rest] = await sequencesOf(firstDay);
    assert.deepEqual([first, rest.length], [6, 34]);
  });

  it('a report of partners has the sums of their orders and trades, by day and by month', async () => {
    const random = numbers(11);
    const stored: StoredOrder[] = [];
    const steps: StoredStep[] = [];
    const traded = new Map<string, [count: bigint, quantity: bigint, kobo: bigint]>();
    const april = Date.parse('2026-04-28T00:00:00+01:00');
    const april28 = Array.from({ length: 6 }, (_, at) => daysAfter('2026-04-28', at));
    for (let number = 0; number < 900; number += 1) {
      const partner = partnerId(number % 2);
      const createdAt = april + random(6 * dayMs);
      const quantity = BigInt(1 + random(1_000_000_000));
      const countedPriceKobo = BigInt(1 + random(10_000_000));
      const order = filledOrder(partner, createdAt, number, { quantity, countedPriceKobo, timeInForce: 'gtc' });
      let [filledQuantity, filledValueKobo, updatedAt] = [0n, 0n, createdAt];
      for (let sequence = 2; sequence < 2 + random(4); sequence += 1) {
        // A trade is told later than it was made, sometimes on a day after it. A clock that is behind dates it before its order.
        const isBehind = sequence === 2 && number % 8 === 0;
        const upstreamAt = updatedAt + (isBehind ? -3_600_000 : random(dayMs));
        const at = upstreamAt + random(100_000) - 10;
        const isOld = random(5) === 0;
        const isCounted = random(6) > 0;
        const [shares, priceKobo] = [BigInt(1 + random(1_000)), BigInt(1 + random(100_000))];
        const isChange = !isOld && filledQuantity > 0n && random(5) === 0;
        const kind = isChange ? 'settled_by_operator' : isCounted || !isOld ? 'report' : 'contradiction';
        const filledChange = isChange ? -1n : isCounted ? shares : 0n;
        const valueChangeKobo = isChange ? -priceKobo : isCounted ? shares * priceKobo : 0n;
        const state = 'partially_filled';
        steps.push({
          ...{
            partnerId: partner,
            orderId: order.id,
            sequence,
            kind,
            at,
            state,
            detail: '',
            reportNumber: null,
            upstreamAt,
          },
          ...{ quantity: isChange ? 0n : shares, priceKobo, tradeSequence: isChange ? 2 : null },
          filledChange: isOld ? null : filledChange,
          valueChangeKobo: isOld ? null : valueChangeKobo,
        });
        const day = lagosDay(Math.min(upstreamAt, at));
        const name = `${partner} ${day < order.countedDay ? order.countedDay : day}`;
        const [count, all, kobo] = traded.get(name) ?? [0n, 0n, 0n];
        traded.set(name, [
          count + (isChange || filledChange === 0n ? 0n : 1n),
          all + filledChange,
          kobo + valueChangeKobo,
        ]);
        filledQuantity += filledChange;
        filledValueKobo += valueChangeKobo;
        updatedAt = Math.max(updatedAt, at);
      }
      const state = (['filled', 'cancelled', 'expired', 'rejected'] as const)[random(4)] ?? 'filled';
      stored.push({ ...order, state, filledQuantity, filledValueKobo, updatedAt });
    }
    await gateway.database.writeAll([orders.insert(...stored), orderSteps.insert(...steps)]);

    const ofDays = new Map<string, Found>();
    for (const day of [...april28, ...Array.from({ length: 6 }, (_, at) => daysAfter('2026-05-04', at))]) {
      for (const each of await figures({ from_day: day })) ofDays.set(`${each.partner_id} ${day}`, each);
    }
    const placed = groupBy(stored, ({ partnerId: owner, countedDay }) => `${owner} ${countedDay}`);
    for (const [name, day] of ofDays) {
      const byState = groupBy(placed.get(name) ?? [], ({ state }) => state);
      assert.deepEqual(
        (day.orders ?? []).map((each: Found) => [each.state, each.count, each.value_kobo_decimal]),
        [...byState]
          .map(([state, some]) => [
            state,
            `${some.length}`,
            `${sum(some.map((order) => order.quantity * order.countedPriceKobo))}`,
          ])
          .sort(),
        name,
      );
      const { count, quantity_decimal, value_kobo_decimal } = day.trades;
      assert.deepEqual([count, quantity_decimal, value_kobo_decimal].map(big), traded.get(name) ?? [0n, 0n, 0n], name);
    }
    for (const name of [...placed.keys(), ...traded.keys()]) assert.ok(ofDays.has(name), name);
    const all = [...ofDays.values()];
    assert.equal(
      sum(all.map(({ trades }) => trades.value_kobo_decimal)),
      sum(stored.map(({ filledValueKobo }) => filledValueKobo)),
      'every trade is in one day',
    );

    const whole = { from_day: '2026-04-20', to_day: '2026-05-20' };
    const byDay = await figures(whole);
    assert.deepEqual(
      byDay.filter((each) => each.orders !== undefined || each.trades.count !== undefined),
      all.toSorted(inOrder).filter((each) => each.orders !== undefined || each.trades.count !== undefined),
    );
    const months = await figures({ ...whole, period: 'REPORT_PERIOD_MONTH' });
    for (const month of months) {
      const own = all.filter(
        ({ partner_id, first_day }) =>
          partner_id === month.partner_id && first_day.slice(0, 7) === month.first_day.slice(0, 7),
      );
      assert.equal(big(month.trades.value_kobo_decimal), sum(own.map(({ trades }) => trades.value_kobo_decimal)));
      assert.equal(
        sum((month.orders ?? []).map(({ value_kobo_decimal: kobo }: Found) => kobo)),
        sum(own.flatMap((day) => (day.orders ?? []).map(({ value_kobo_decimal: kobo }: Found) => kobo))),
      );
    }
    assert.deepEqual(
      months
        .filter(({ partner_id }) => partner_id === partnerId(0))
        .map(({ first_day, last_day }) => [first_day, last_day]),
      [
        ['2026-04-20', '2026-04-30'],
        ['2026-05-01', '2026-05-20'],
      ],
    );
    const lines = await csvOf(operator, 'ExportPartnerFigures', { from_day: '2026-04-29', partner_id: partnerId(0) });
    assert.match(lines[0] ?? '', /^par_\w+,2026-04-29,2026-04-29,orders,cancelled,\d+,,\d+$/);
    assert.ok(
      lines.some((line) => /,trades,traded,\d+,\d+,\d+$/.test(line)),
      lines.join('\n'),
    );
    assert.ok(
      lines.some((line) => /,closing,available,,,\d+$/.test(line)),
      lines.join('\n'),
    );
  });

  it('a report adds up whole days, whether their orders, trades and entries fill what one statement adds up or one more', async () => {
    const partner = await gateway.newPartner();
    for (const [day, count] of [
      ['2026-06-01', 2_000],
      ['2026-06-02', 2_001],
    ] as const) {
      const at = Date.parse(`${day}T09:00:00+01:00`);
      const rows = Array.from({ length: count }, (_, number) => filledOrder(partner.id, at, number));
      const step = {
        sequence: 2,
        kind: 'report',
        at,
        state: 'filled',
        detail: '',
        reportNumber: null,
        upstreamAt: at,
      } as const;
      const change = {
        quantity: 100n,
        priceKobo: 1_000n,
        tradeSequence: null,
        filledChange: 100n,
        valueChangeKobo: 100_000n,
      };
      const trades = rows.map(({ id }) => ({ ...step, ...change, partnerId: partner.id, orderId: id }));
      await gateway.database.writeAll([orders.insert(...rows), orderSteps.insert(...trades)]);
      await append(
        partner.id,
        Array.from({ length: count }, () => ({ type: 'credit' as const, createdAt: at })),
      );
      const [found] = await figures({ from_day: day, partner_id: partner.id });
      assert.deepEqual(found.orders, [
        { state: 'filled', count: `${count}`, value_kobo_decimal: `${count * 100_000}` },
      ]);
      assert.deepEqual(found.trades, {
        ...{ count: `${count}`, quantity_decimal: `${count * 100}` },
        value_kobo_decimal: `${count * 100_000}`,
      });
      assert.deepEqual(found.wallet.entries, [
        { type: 'credit', count: `${count}`, amount_kobo_decimal: `${count * 1_000}` },
      ]);
    }
  });

  it('a report of today has allocations and withdrawals by what became of them', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 50_000n);
    await gateway.allocate(partner, { amount_kobo: 700 });
    await gateway.allocate(partner, { amount_kobo: 800 });
    await gateway.place(partner, { symbol: 'SIM-REST' });
    const today = lagosDay(Date.now());
    const [now] = await figures({ from_day: today, partner_id: partner.id });
    assert.deepEqual(now.allocations, [{ state: 'booked', count: '2', value_kobo_decimal: '1500' }]);
    assert.deepEqual(now.orders, [{ state: 'pending', count: '1', value_kobo_decimal: '100000' }]);
    assert.deepEqual(
      now.wallet.entries.map((each: Found) => [each.type, each.count, each.amount_kobo_decimal]),
      [
        ['credit', '1', '50000'],
        ['post', '2', '1500'],
        ['reserve', '2', '1500'],
      ],
    );
    assert.deepEqual(
      [now.wallet.opening.available_kobo ?? '0', now.wallet.closing.available_kobo, now.wallet.closing.posted_kobo],
      ['0', '48500', '1500'],
    );
    assert.deepEqual(await figures({ from_day: daysAfter(today, -1), partner_id: partner.id }), []);
  });

  it('each read of money is in the audit, and needs a role that may see money', async () => {
    await ledger({ from_day: firstDay, partner_id: partnerId(1) });
    const { entries } = await operator.call('Audit.ListEntries', { action: 'Reports.ExportLedger', limit: 1 });
    assert.equal(entries[0].partner_id, partnerId(1));
    assert.deepEqual(JSON.parse(entries[0].detail).asked, { from_day: firstDay, partner_id: partnerId(1) });
    const wrong: JsonObject[] = [
      { from_day: '' },
      { from_day: firstDay, to_day: '2026-04-02' },
      { from_day: firstDay, period: 7 },
    ];
    for (const request of wrong) {
      await assert.rejects(figures(request), { code: status.INVALID_ARGUMENT }, JSON.stringify(request));
    }
  });

  it('a report ends with an error, and is not complete, if an entry of a ledger cannot be read', async () => {
    for (const missing of [1, 3, 5]) {
      const { id } = await gateway.newPartner();
      await append(
        id,
        Array.from({ length: 5 }, (_, at) => ({ type: 'credit' as const, createdAt: monday + at * 3_600_000 })),
      );
      const day = { from_day: firstDay, to_day: firstDay, partner_id: id };
      assert.equal((await ledger(day)).length, 7);
      const remove = statement('DELETE FROM wallet_transfers WHERE partner_id = ? AND sequence = ?', id, missing);
      await gateway.database.write(remove);
      const period = { period: 'REPORT_PERIOD_DAY' };
      for (const report of [() => ledger(day), () => figures({ ...day, ...period })]) {
        await assert.rejects(report(), { code: status.UNAVAILABLE }, `without the entry ${missing}`);
      }
    }
  });
});

function inOrder(one: Found, other: Found): number {
  const [first, second] = [one, other].map(({ partner_id, first_day }) => `${partner_id} ${first_day}`) as [
    string,
    string,
  ];
  return first < second ? -1 : 1;
}
