import mysql from 'mysql2/promise';
import { lagosDay } from '../../kit/clock.ts';
import { settings } from '../store/tables.ts';
import type { World } from '../world.ts';
import type { Deal } from './deals.ts';
import { type DirectSale, directSettlementSetting } from './direct-sales.ts';

/** The part of a unit of work that is about direct settlement. */
export class DirectSalesUnit {
  readonly #booked: number[] = [];
  readonly #paidOut: number[] = [];
  #isOn: boolean | undefined;

  constructor(private readonly world: World) {}

  /** Sets whether the proceeds of new sales go to the customer's bank when they settle. */
  setOn(isOn: boolean): void {
    this.world.directSales.isOn = isOn;
    this.#isOn = isOn;
  }

  /** Follows an execution. */
  book(deal: Deal): void {
    if (this.world.directSales.book(deal)) this.#booked.push(deal.number);
  }

  /** Removes the sales that have settled, and returns them. Their proceeds are for the caller to book. */
  takeSettled(): DirectSale[] {
    const settled = this.world.directSales.takeSettled(lagosDay(this.world.clock.now()));
    this.#paidOut.push(...settled.map(({ deal }) => deal));
    return settled;
  }

  statements(): string[] {
    const { format } = mysql;
    const setting = this.#isOn === undefined ? [] : [{ name: directSettlementSetting, value: this.#isOn ? 1 : 0 }];
    return [
      ...settings.save(setting),
      ...(this.#booked.length === 0
        ? []
        : [format('INSERT INTO direct_sales (deal) VALUES ?', [this.#booked.map((deal) => [deal])])]),
      ...(this.#paidOut.length === 0 ? [] : [format('DELETE FROM direct_sales WHERE deal IN (?)', [this.#paidOut])]),
    ];
  }
}
