import type { Habit } from '../habit.ts';
import { nextDay, whileAway } from '../numbers.ts';
import { utcTimestamp, type WireField } from '../wire.ts';

const excuse = 'an order that ends after a bust or a correction shows the first trade until an operator settles it';

function possDup(): WireField[] {
  return [
    [43, 'Y'],
    [122, utcTimestamp(Date.now())],
  ];
}

/** The order state change matrices over a gap and over a night. */
export const matrixSessionHabits: readonly Habit[] = [
  {
    name: 'the exchange takes a trade back while the line is down, and sends the bust again when it is asked',
    why: 'matrix E over a gap',
    expect: 'finding',
    excuse,
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      const trade = desk.trade(40);
      await act.sees('partially_filled', 40);
      await whileAway(act, () => void desk.bust(trade));
    },
  },
  {
    name: 'the exchange takes a trade back while the line is down, and passes over the bust',
    why: 'engines that keep no messages pass over all of them',
    expect: 'finding',
    excuse,
    manners: () => ({ isPassedOver: () => true }),
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      const trade = desk.trade(40);
      await act.sees('partially_filled', 40);
      await whileAway(act, () => void desk.bust(trade));
    },
  },
  {
    name: 'the exchange confirms a pending cancel of a good-till-cancelled order only on the next day',
    why: 'matrix B over a night: cancels of the last second are worked on in the morning',
    expect: 'true',
    orders: [{ time_in_force: 'gtc' }],
    onCancel: (desk, request) => void desk.report({ 11: request.text(11), 41: request.text(41), 150: '6', 39: '6' }),
    script: async (act) => {
      await act.sees('pending');
      await act.cancel();
      await act.asked('F');
      const [request] = act.acceptor.received('F').filter((each) => each.find(41) === act.placed[0]?.id);
      await nextDay(act);
      if (request !== undefined) (await act.desk()).answerCancel(request);
    },
  },
  {
    name: 'the exchange lets a day order expire while a cancel is pending, and says so only on the next day',
    why: 'matrix B over a night: the evening run is reported in the morning',
    expect: 'true',
    onCancel: (desk, request) => void desk.report({ 11: request.text(11), 41: request.text(41), 150: '6', 39: '6' }),
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await act.cancel();
      await act.asked('F');
      await nextDay(act);
      desk.end('expired');
    },
  },
  {
    name: 'the exchange restates a good-till-cancelled order in the morning with another OrderID, and fills the rest',
    why: 'matrix D over a night',
    expect: 'true',
    orders: [{ time_in_force: 'gtc' }],
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      desk.trade(40);
      desk.report({ 150: '3', 39: '3' });
      await act.sees('partially_filled', 40);
      await nextDay(act);
      const newId = desk.acceptor.newId('Y');
      const today: WireField[] = [
        [424, '60'],
        [425, '0'],
        [426, '0'],
      ];
      desk.report({ 150: 'D', 39: '1', 378: '1', 37: newId, also: today });
      desk.trade(60, { 37: newId });
    },
  },
  {
    name: 'the exchange takes back in the morning a trade of yesterday of a good-till-cancelled order',
    why: 'matrix E over a night',
    expect: 'finding',
    excuse,
    orders: [{ time_in_force: 'gtc' }],
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      const trade = desk.trade(40);
      await act.sees('partially_filled', 40);
      await nextDay(act);
      desk.bust(trade);
    },
  },
  {
    name: 'the exchange passes over a fill by a gap fill, and sends it again under its number all the same',
    why: 'a second store finds the message that the first one had lost',
    expect: 'safe',
    script: async ({ desk, acceptor, sees }) => {
      await sees('pending');
      const side = await desk();
      const number = acceptor.numbers.nextOut;
      const trade = side.trade(100, { how: { isLost: true } });
      acceptor.write(acceptor.numbers.gapFill(number, number + 1));
      await acceptor.barrier();
      side.sayTrade(trade, { how: { number, header: possDup() } });
    },
  },
  {
    name: 'the exchange sends a missed fill again when it is asked, and once more with PossResend under a new number',
    why: 'a fail-over site sends everything of the last minute again',
    expect: 'quiet',
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await whileAway(act, () => {
        const trade = desk.trade(100);
        desk.sayTrade(trade, { how: { header: [[97, 'Y']] } });
      });
    },
  },
  {
    name: 'the exchange lists all orders after a reconnect, ended ones too, with TotNumReports and LastRptRequested',
    why: 'matrix H: a mass status of all orders of the day',
    expect: 'true',
    orders: [{ quantity: 10 }, { quantity: 20 }, { quantity: 30 }],
    onMassStatus: (desk, request) =>
      void desk.status({ 584: request.text(584), 911: '3', 912: desk.order.terms.quantity === 30n ? 'Y' : 'N' }),
    script: async (act) => {
      await act.sees('pending', 0, 2);
      const [first, second] = [await act.desk(0), await act.desk(1)];
      first.trade(10);
      second.trade(5);
      second.end('cancelled');
      await act.sees('cancelled', 5, 1);
      await whileAway(act, () => undefined);
    },
  },
  {
    name: 'the exchange corrects a trade and cancels the rest while the line is down',
    why: 'matrix E over a gap: the end counts what no trade has reported',
    expect: 'finding',
    excuse,
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      const trade = desk.trade(40);
      await act.sees('partially_filled', 40);
      await whileAway(act, () => {
        trade.quantity = 30n;
        desk.sayTrade(trade, { 150: 'G', 17: desk.acceptor.newId('G'), 19: trade.execId }).end('cancelled');
      });
    },
  },
];
