import Big from 'big.js';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { toKoboDecimal } from '../../kit/money.ts';

/** A charge on buys, on sales or on both: a rate of the amount, or a fixed sum. */
export interface Charge {
  readonly name: string;
  readonly group: 'commission' | 'statutory' | 'other';
  readonly sides: readonly Side[];
  /** A decimal fraction of the amount. */
  readonly rate?: string;
  readonly fixedKobo?: string;
  /** Whether value added tax is due on it. */
  readonly taxed: boolean;
}

/** The charges from a Lagos day on. */
export interface ChargeSettings {
  readonly fromDay: string;
  readonly charges: readonly Charge[];
  readonly vatRate: string;
}

const buy = [Side.BUY];
const sale = [Side.SELL];
const both = [Side.BUY, Side.SELL];

/** All charges, oldest first. A change of rates is one more entry. */
const chargeSettings: readonly ChargeSettings[] = [
  {
    fromDay: '1970-01-01',
    charges: [
      { name: 'Commission', group: 'commission', sides: both, rate: '0.0135', taxed: true },
      { name: 'SEC fee', group: 'statutory', sides: buy, rate: '0.003', taxed: true },
      { name: 'NGX fee', group: 'statutory', sides: sale, rate: '0.003', taxed: true },
      { name: 'CSCS fee', group: 'statutory', sides: sale, rate: '0.003', taxed: true },
      { name: 'Stamp duty', group: 'statutory', sides: both, rate: '0.0008', taxed: false },
      { name: 'Trade alert', group: 'other', sides: both, fixedKobo: '400', taxed: false },
    ],
    vatRate: '0.075',
  },
];

/** The charges on an amount, as exact decimals of kobo. */
export interface Charges {
  readonly commission: string;
  readonly statutory: string;
  readonly other: string;
  readonly fees: readonly { readonly name: string; readonly amountKoboDecimal: string }[];
  readonly charged: string;
  /** The cost of a buy, or the proceeds of a sale. */
  readonly total: string;
}

/** Computes the charges on an amount. Nothing is rounded, because an integer times these rates has few places. */
export function chargesOn(amountKobo: bigint, side: Side, day: string): Charges {
  const settings = chargeSettings.findLast((each) => each.fromDay <= day);
  if (settings === undefined) throw new Error(`No charges are set for ${day}`);
  const amount = new Big(amountKobo.toString());
  const sums = { commission: new Big(0), statutory: new Big(0), other: new Big(0) };
  const fees: { name: string; amountKoboDecimal: string }[] = [];
  let taxable = new Big(0);
  const add = (name: string, group: Charge['group'], charged: Big) => {
    sums[group] = sums[group].plus(charged);
    fees.push({ name, amountKoboDecimal: toKoboDecimal(charged) });
  };
  for (const charge of settings.charges) {
    if (!charge.sides.includes(side)) continue;
    const charged = amount.times(charge.rate ?? '0').plus(charge.fixedKobo ?? '0');
    if (charge.taxed) taxable = taxable.plus(charged);
    add(charge.name, charge.group, charged);
  }
  add('VAT', 'statutory', taxable.times(settings.vatRate));
  const charged = sums.commission.plus(sums.statutory).plus(sums.other);
  return {
    commission: toKoboDecimal(sums.commission),
    statutory: toKoboDecimal(sums.statutory),
    other: toKoboDecimal(sums.other),
    fees,
    charged: toKoboDecimal(charged),
    total: toKoboDecimal(side === Side.BUY ? amount.plus(charged) : amount.minus(charged)),
  };
}
