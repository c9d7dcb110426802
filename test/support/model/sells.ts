import assert from 'node:assert/strict';
import { MarketSession } from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { RejectReason } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Outcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import { magicEnds, type OrderEnd, placeFor, price, textOf } from './orders.ts';
import { agreed, type OrderBody, type PartnerModel } from './partner-model.ts';
import { ask, boundMs, type Command, type Whole } from './surroundings.ts';

/** A stock of which the broker lets nobody sell more than he has. Its price stands still, and orders away from it rest. */
const symbol = 'STILL';

/** Lists the stock, and opens the exchange whatever the hour. */
export async function listStock(controls: Whole['controls']): Promise<void> {
  const instrument = { symbol, name: 'Still Plc', lastPriceKobo: BigInt(agreed.quoteKobo) };
  await controls.setInstrument({ instrument }, callTimeout);
  await controls.setSession({ session: MarketSession.OPEN }, callTimeout);
}

const resting: OrderEnd = { state: 'pending', part: 0, status: 201 };
const rejected = { state: 'rejected', part: 0, status: 422, code: 'order_rejected' };

/** The outcomes that the exchange can be told, each with the end that it leads to. */
const forcedOutcomes: readonly (readonly [Outcome, OrderEnd])[] = [
  [Outcome.FILL, { state: 'filled', part: 1, status: 201 }],
  [Outcome.EXPIRE, { state: 'expired', part: 0, status: 201 }],
  [Outcome.ACCEPT_THEN_REJECT, { state: 'rejected', part: 0, status: 201, rejectReason: 'symbol_not_tradable' }],
  [Outcome.REJECT, { ...rejected, rejectReason: 'symbol_not_tradable' }],
];

/** Places an order of which the exchange was told what to make. */
async function placeForced(
  model: PartnerModel,
  whole: Whole,
  placed: { readonly replica: number; readonly body: OrderBody; readonly end: OrderEnd; readonly outcome: Outcome },
): Promise<void> {
  const [account] = whole.partner.accounts;
  const rejectReason = RejectReason.SYMBOL_NOT_TRADABLE;
  const { outcome } = placed;
  await whole.controls.forceOutcome({ account, symbol, outcome, parts: 3, rejectReason }, callTimeout);
  await placeFor(model, whole, placed);
  // An order that never came to the exchange leaves it for the next one.
  await whole.controls.clearDirectives({ account: account ?? '' }, callTimeout);
}

/** Buys shares in three parts. */
function buy(quantity: number, price_kobo: number, replica: number): Command {
  const body = { side: 'buy', symbol, quantity, price_kobo } as const;
  return {
    toString: () => `${textOf(body)}, filled in parts`,
    check: () => true,
    run: (model, whole) =>
      placeForced(model, whole, {
        ...{ replica, body, outcome: Outcome.FILL },
        end: { state: 'filled', part: 1, status: 201 },
      }),
  };
}

/** Buys shares before the first command, so that more orders sell. */
export async function buyAtFirst(model: PartnerModel, whole: Whole): Promise<void> {
  await buy(40, 900, 0).run(model, whole);
  await settlePurchases(model, whole);
}

/** The end of an order to sell the stock: the exchange takes it if the account has the shares. */
function endOf(model: PartnerModel, quantity: number): OrderEnd {
  if (quantity <= model.sellableShares(symbol)) return resting;
  const isLater = quantity <= model.freeShares(symbol);
  return { ...rejected, rejectReason: isLater ? 'settlement_lockout' : 'insufficient_funds' };
}

/** A number of shares: a thousandth part of what there is, or one more than there is. */
function partOf(shares: number, part: number): number {
  return part > 900 ? Math.max(0, shares) + 1 : Math.max(1, Math.ceil((shares * part) / 900));
}

/** Sells some of the stock, all of it, or more than can be sold. While the order rests, it takes no money of the account. */
function sell(part: number, price_kobo: number, replica: number, isOfAll: boolean): Command {
  const bodyFor = (model: PartnerModel): OrderBody => {
    const shares = isOfAll ? model.freeShares(symbol) : model.sellableShares(symbol);
    return { side: 'sell', symbol, quantity: partOf(shares, part), price_kobo };
  };
  return {
    toString: () => `sell ${part} thousandths of the ${isOfAll ? '' : 'settled '}${symbol} at ${price_kobo}`,
    check: () => true,
    run: async (model, whole) => {
      const body = bodyFor(model);
      const before = await balance(whole);
      await placeFor(model, whole, { replica, body, end: endOf(model, body.quantity) });
      assert.deepEqual(await balance(whole), before, 'an order to sell takes no money');
    },
  };
}

/** The figures of the first account's money. */
async function balance(whole: Whole): Promise<object> {
  const [account] = whole.partner.accounts;
  const { body } = await ask(whole, 0, 'GET', `/v1/accounts/${account}/balance`);
  const { as_of: _, ...figures } = body;
  return figures;
}

/** Sells shares that the account has, while the exchange is told what to make of the order. */
function sellForced(
  part: number,
  price_kobo: number,
  replica: number,
  [outcome, end]: (typeof forcedOutcomes)[number],
): Command {
  return {
    toString: () => `sell ${part} thousandths of the settled ${symbol}, forced to ${Outcome[outcome]}`,
    check: (model) => model.sellableShares(symbol) > 0,
    run: (model, whole) => {
      const quantity = Math.max(1, Math.ceil((model.sellableShares(symbol) * part) / 1_000));
      const body = { side: 'sell', symbol, quantity, price_kobo } as const;
      return placeForced(model, whole, { replica, body, end, outcome });
    },
  };
}

/** Sells shares of a magic symbol that the account has bought. */
function sellMagic(at: number, part: number, price_kobo: number | null, replica: number): Command {
  const magicSymbols = (model: PartnerModel) =>
    model.boughtSymbols.filter((one) => one in magicEnds && model.freeShares(one) > 0);
  return {
    toString: () => `sell ${part} thousandths of the shares ${at} at ${price_kobo ?? 'the market'}`,
    check: (model) => magicSymbols(model as PartnerModel).length > 0,
    run: (model, whole) => {
      const all = magicSymbols(model);
      const magic = all[at % all.length] ?? '';
      const end = magicEnds[magic];
      assert.ok(end !== undefined);
      const quantity = Math.max(1, Math.ceil((model.freeShares(magic) * part) / 1_000));
      return placeFor(model, whole, { replica, body: { side: 'sell', symbol: magic, quantity, price_kobo }, end });
    },
  };
}

/** Lets the purchases so far settle. */
export async function settlePurchases(model: PartnerModel, whole: Whole): Promise<void> {
  await whole.controls.settle({ account: whole.partner.accounts[0] }, callTimeout);
  model.settlePurchases();
}

/** Lets the purchases so far settle: their shares can be sold. */
function settle(): Command {
  return { toString: () => 'settle purchases', check: () => true, run: settlePurchases };
}

/** Compares the shares of the first account with the model. */
export async function assertPositions(model: PartnerModel, whole: Whole): Promise<void> {
  const [account] = whole.partner.accounts;
  const expected = model.boughtSymbols.map((one) => [
    ...[one, model.heldShares(one)],
    ...(one === symbol ? [model.sellableShares(one)] : []),
  ]);
  await eventually(async () => {
    const { body } = await ask(whole, 0, 'GET', `/v1/accounts/${account}/positions`);
    const seen = body.data.map((one: { symbol: string; quantity: number; available_quantity: number }) => [
      ...[one.symbol, one.quantity],
      ...(one.symbol === symbol ? [one.available_quantity] : []),
    ]);
    assert.deepEqual(seen.sort(), expected.filter(([, held]) => held !== 0).sort(), 'the shares of the account');
  }, boundMs);
}

const part = fc.integer({ min: 1, max: 1_000 });
const replica = fc.nat(1);
/** Below what is quoted nobody sells, and above it nobody buys. */
const buyPrice = fc.integer({ min: 90, max: 94 }).map((tens) => 10 * tens);
const sellPrice = fc.integer({ min: 106, max: 110 }).map((tens) => 10 * tens);

/** The commands of orders to sell, and those that bring shares for them. */
export const sellCommands = [
  ...[0, 1].map(() =>
    fc.tuple(fc.integer({ min: 1, max: 60 }), buyPrice, replica).map(([quantity, kobo, on]) => buy(quantity, kobo, on)),
  ),
  ...[0, 1].map(() =>
    fc
      .tuple(part, sellPrice, replica, fc.boolean())
      .map(([share, kobo, on, isOfAll]) => sell(share, kobo, on, isOfAll)),
  ),
  fc
    .tuple(part, sellPrice, replica, fc.constantFrom(...forcedOutcomes))
    .map(([share, kobo, on, outcome]) => sellForced(share, kobo, on, outcome)),
  fc.tuple(fc.nat(1_000), part, price, replica).map(([at, share, kobo, on]) => sellMagic(at, share, kobo, on)),
  ...[0, 1].map(() => fc.constant(settle())),
];
