import type { Habit } from '../habit.ts';

/** Counts, averages, ends and units that contradict what was reported. */
export const statementCountHabits: readonly Habit[] = [
  ...(['7', '9', 'B'] as const).map(
    (state): Habit => ({
      name: `the exchange says OrdStatus ${state} with CumQty 20 where one trade of 40 was reported`,
      why: 'a trade was corrected without a word, and 20 never was the count',
      expect: 'finding',
      onOrder: (desk) => {
        const trade = desk.accept().trade(40);
        trade.quantity = 20n;
        desk.report({ 150: state, 39: state });
      },
    }),
  ),
  ...(['I', 'B', '3'] as const).map(
    (type): Habit => ({
      name: `the exchange says ExecType ${type} of a filled order with the AvgPx of a trade that it corrected silently`,
      why: 'a price was corrected in the evening, and only the average tells',
      expect: 'finding',
      onOrder: (desk) => {
        const trade = desk.accept().trade(100);
        trade.priceKobo = 950n;
        desk.report({ 150: type, 39: { I: '2', B: 'B', 3: '3' }[type] });
      },
      excuse: 'the order was filled before its price was corrected',
    }),
  ),
  {
    name: 'the exchange takes back by ExecTransType 1 the end of an order, which rests again',
    why: 'a trader cancelled the wrong order, and its engine undoes that',
    excuse: 'the end was reported in a way that convinces',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().end('cancelled', { 17: 'C1' });
      desk.order.end = undefined;
      desk.report({ 20: '1', 19: 'C1', 150: '4', 39: '0' });
    },
  },
  {
    name: 'the exchange fills 40 in a currency that is not the naira',
    why: 'Currency 15 of the settlement of a foreign investor',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(40, { 15: 'USD' }),
  },
  {
    name: 'the exchange trades 40 as units of a hundred shares (QtyType 854=1)',
    why: 'QtyType says contracts, and the counts are of contracts',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(40, { 854: '1' }),
  },
  {
    name: 'the exchange gives the price of a trade in percent (PriceType 423=1)',
    why: 'bonds trade beside shares there',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(40, { 423: '1' }),
  },
];
