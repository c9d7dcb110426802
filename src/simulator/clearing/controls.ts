import { timestampMs } from '@bufbuild/protobuf/wkt';
import { MarketSession } from '../../gen/marina/broker/v1/accounts_pb.ts';
import type { Controls } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { SimulatorWriter } from '../store/writer.ts';
import { check, isSide, positive, text, whole } from '../validation.ts';
import type { SimulatorHandlers } from '../wire/rpc.ts';
import { maxAccounts, type World } from '../world.ts';
import { restrictionsFrom } from './account-states.ts';
import type { Reads } from './reads.ts';

const maxTrades = 10_000;
const maxAmountKobo = 10n ** 18n;
const maxCashKobo = 10n ** 15n;

export interface ClearingControlsContext {
  readonly world: World;
  readonly writer: SimulatorWriter;
  readonly reads: Reads;
}

type ClearingControls = Pick<
  SimulatorHandlers<typeof Controls>,
  'setCash' | 'setAccountState' | 'addTrades' | 'setMarket' | 'getReads'
>;

/** The controls of the accounts' records, and of the session. */
export function clearingControls({ world, writer, reads }: ClearingControlsContext): ClearingControls {
  return {
    setCash: async ({ account, cashKobo, sharesElsewhere }) => {
      text(account, 'account', 64);
      check(cashKobo >= -maxCashKobo && cashKobo <= maxCashKobo, 'cash_kobo');
      const shares = sharesElsewhere === undefined ? undefined : whole(sharesElsewhere, 'shares_elsewhere');
      await writer.run([], (unit) => {
        unit.backOffice.setCash(account, Number(cashKobo));
        if (shares !== undefined) unit.clearing.setSharesElsewhere(account, shares);
      });
      return {};
    },
    setAccountState: async ({ account, state, restrictions: given }) => {
      text(account, 'account', 64);
      const restrictions = restrictionsFrom(state, given, world.clock.now());
      check(world.states.has(account) || world.states.size < maxAccounts, 'account');
      await writer.run([], (unit) => unit.clearing.setState({ account, state, restrictions }));
      return {};
    },
    addTrades: async (request) => {
      const account = text(request.account, 'account', 64);
      const symbol = text(request.symbol, 'symbol', 20);
      check(isSide(request.side), 'side');
      const quantity = positive(request.quantity, 'quantity');
      const priceKobo = positive(request.priceKobo, 'price_kobo');
      const count = Math.max(1, request.count);
      check(count <= maxTrades, 'count');
      check(request.quantity * request.priceKobo * BigInt(count) <= maxAmountKobo, 'quantity');
      check(request.stepMs >= 0, 'step_ms');
      const first = request.executedAt === undefined ? world.clock.now() : timestampMs(request.executedAt);
      const { side, stepMs } = request;
      await writer.run([], (unit) => {
        const name = world.instruments.get(symbol)?.name ?? symbol;
        const trade = { account, clientOrderId: '', symbol, name, side, quantity, priceKobo };
        for (let at = 0; at < count; at += 1) unit.clearing.book({ ...trade, executedAtMs: first + at * stepMs });
      });
      return {};
    },
    setMarket: async ({ market }) => {
      check(market !== undefined && market.session !== MarketSession.UNSPECIFIED, 'market.session');
      // In memory only, so that a restart gives tests a fresh start.
      world.reportedMarket = market;
      return {};
    },
    getReads: async () => {
      const { most, mostOfAccount, now } = reads.take();
      return { most, mostOfAccount, now };
    },
  };
}
