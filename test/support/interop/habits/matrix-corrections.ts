import type { TrueTrade } from '../book.ts';
import type { Desk, Wording } from '../desk.ts';
import type { Habit } from '../habit.ts';

const excuse = 'an order that ends after a bust or a correction shows the first trade until an operator settles it';

/** Corrects a trade and says so. Returns the ExecID of the correction. */
function correct(desk: Desk, trade: TrueTrade, to: { quantity?: bigint; price?: bigint }, said: Wording = {}): string {
  const execId = desk.acceptor.newId('G');
  const refersTo = trade.execId;
  if (to.quantity !== undefined) trade.quantity = to.quantity;
  if (to.price !== undefined) trade.priceKobo = to.price;
  desk.sayTrade(trade, { 150: 'G', 17: execId, 19: refersTo, ...said });
  return execId;
}

/** Section E of the order state change matrices: trades that are taken back or corrected, in each state of an order. */
export const matrixCorrectionHabits: readonly Habit[] = [
  {
    name: 'the exchange corrects a trade, and corrects the correction by the ExecID of the correction',
    why: 'matrix E: ExecRefID is the ExecID of the last report of the trade',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      const first = correct(desk, trade, { price: 950n });
      correct(desk, trade, { price: 960n }, { 19: first });
    },
  },
  {
    name: 'the exchange corrects a trade and takes it back by the ExecID of the correction',
    why: 'matrix E: ExecRefID is the ExecID of the last report of the trade',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      const first = correct(desk, trade, { quantity: 30n });
      desk.bust(trade, { 19: first });
    },
  },
  {
    name: 'the exchange takes a trade back twice under two ExecIDs',
    why: 'supervision and the clearing house both report it',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade).bust(trade);
    },
  },
  {
    name: 'the exchange takes a trade back and trades the same shares again at once',
    why: 'a trade is moved to another counterparty',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade).trade(40);
    },
  },
  {
    name: 'the exchange takes a trade back after the order was cancelled',
    why: 'matrix E: the order stays cancelled, with fewer shares',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.end('cancelled').bust(trade);
    },
  },
  {
    name: 'the exchange corrects the price of a trade after the order expired',
    why: 'matrix E: the order stays expired, at another price',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.end('expired');
      correct(desk, trade, { price: 940n });
    },
  },
  {
    name: 'the exchange corrects a trade to what it was',
    why: 'a correction of a field that we do not read',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      correct(desk, trade, {}, { 58: 'counterparty corrected' });
    },
  },
  {
    name: 'the exchange takes a trade back with LastQty 0 and LastPx 0',
    why: 'nothing traded in a bust, as some engines read the specification',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade, { 32: '0', 31: '0' });
    },
  },
  {
    name: 'the exchange takes back the first of two trades of the same quantity and price without ExecRefID',
    why: 'the trade is named by its TrdMatchID only',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.trade(40);
      desk.bust(trade, { 19: null, 880: 'M1' });
    },
  },
  {
    name: 'the exchange takes a trade back by ExecTransType 1 with ExecType F',
    why: 'an engine that was made for FIX 4.2 and only half moved on',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade, { 150: 'F', 20: '1' });
    },
  },
  {
    name: 'the exchange corrects a trade by ExecTransType 2 with ExecType F',
    why: 'an engine that was made for FIX 4.2 and only half moved on',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      correct(desk, trade, { quantity: 30n }, { 150: 'F', 20: '2' });
    },
  },
  {
    name: 'the exchange takes a trade back under the ExecID of the trade',
    why: 'the bust has no id of its own',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade, { 17: trade.execId });
    },
  },
  {
    name: 'the exchange takes a trade back before it has said New',
    why: 'an auction is decided again before the orders are acknowledged',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.takeSilently().trade(40);
      desk.bust(trade).accept();
    },
  },
  {
    name: 'the exchange takes a trade back, and the order is cancelled by itself',
    why: 'an erroneous trade ends the order',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade).end('cancelled');
    },
  },
  {
    name: 'the exchange takes a trade back while a cancel is pending, and cancels the rest',
    why: 'matrices B and E at once',
    expect: 'finding',
    excuse,
    onCancel: (desk, request) => {
      const trade = desk.trade(40);
      desk.report({ 11: request.text(11), 41: request.text(41), 150: '6', 39: '6' });
      desk.bust(trade, { 39: '6' }).answerCancel(request);
    },
    script: async (act) => {
      await act.sees('pending');
      await act.cancel();
    },
  },
  {
    name: 'the exchange corrects a trade upwards so that the order is filled',
    why: 'a lot was booked too small',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      correct(desk, trade, { quantity: 100n });
    },
  },
  {
    name: 'the exchange corrects a trade that it reports only afterwards',
    why: 'two processes publish',
    expect: 'finding',
    excuse,
    onOrder: (desk) => {
      const trade = desk.accept().trade(40, 'nothing');
      const first = { ...trade };
      correct(desk, trade, { price: 950n });
      desk.sayTrade(first, { 6: desk.acceptor.price(first.priceKobo) });
    },
  },
  {
    name: 'the exchange takes all trades of a filled order back, and the order goes on',
    why: 'an auction is annulled',
    expect: 'finding',
    excuse: 'the trade is taken back after the order was filled',
    onOrder: (desk) => {
      const first = desk.accept().trade(40);
      const second = desk.trade(60);
      desk.bust(first).bust(second);
    },
  },
];
