import type { RowDataPacket } from 'mysql2/promise';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { WriterConnection } from '../store/database.ts';
import type { Deal } from './deals.ts';

/** A sale whose proceeds go to the customer's bank when it settles. */
export interface DirectSale {
  readonly deal: number;
  readonly account: string;
  readonly kobo: bigint;
  settlementDate: string;
}

/** The sales of a broker with direct settlement that have not been paid out, in memory. It follows the writer's changes one by one. */
export class DirectSales {
  /** Whether the proceeds of new sales are settled directly. */
  isOn = false;
  readonly #sales = new Map<number, DirectSale>();
  /** No sale settles before this day. */
  #earliest = '';

  /** Follows an execution. Returns whether its proceeds will be paid out. */
  book({ number: deal, account, side, considerationKobo: kobo, settlementDate }: Deal): boolean {
    if (!this.isOn || side !== Side.SELL || kobo <= 0n) return false;
    this.#add({ deal, account, kobo, settlementDate });
    return true;
  }

  /** Settles on a day all later settlements of an account, or of all accounts by an empty name. */
  settle(account: string, day: string): void {
    for (const sale of this.#sales.values()) {
      if (sale.settlementDate > day && (account === '' || sale.account === account)) sale.settlementDate = day;
    }
    if (this.#earliest > day) this.#earliest = day;
  }

  /** Removes the sales that have settled, and returns them. */
  takeSettled(today: string): DirectSale[] {
    if (this.#sales.size === 0 || this.#earliest > today) return [];
    const all = [...this.#sales.values()];
    const settled = all.filter(({ settlementDate }) => settlementDate <= today);
    for (const { deal } of settled) this.#sales.delete(deal);
    this.#earliest = '';
    for (const sale of this.#sales.values()) this.#add(sale);
    return settled;
  }

  /** Whether a sale has settled and is not paid out yet. */
  hasSettled(today: string): boolean {
    return this.#sales.size > 0 && this.#earliest <= today;
  }

  /** Returns the proceeds of an account that have settled and are not paid out yet. */
  settledKobo(account: string, today: string): bigint {
    if (!this.hasSettled(today)) return 0n;
    return [...this.#sales.values()].reduce(
      (sum, sale) => (sale.account === account && sale.settlementDate <= today ? sum + sale.kobo : sum),
      0n,
    );
  }

  /** Reads the sales that are not paid out from the tables. */
  async load(connection: WriterConnection): Promise<void> {
    this.#sales.clear();
    this.#earliest = '';
    const [setting] = await connection.read<RowDataPacket & { value: number }>(
      'SELECT value FROM settings WHERE name = ?',
      [directSettlementSetting],
    );
    this.isOn = setting?.value === 1;
    const rows = await connection.read<DirectSaleRow>(
      `SELECT d.number, d.account, CAST(d.consideration_kobo AS CHAR) AS kobo, d.settlement_date
       FROM direct_sales s JOIN deals d ON d.number = s.deal`,
    );
    for (const { number: deal, account, kobo, settlement_date: settlementDate } of rows) {
      this.#add({ deal, account, kobo: BigInt(kobo), settlementDate });
    }
  }

  #add(sale: DirectSale): void {
    this.#sales.set(sale.deal, sale);
    if (this.#earliest === '' || sale.settlementDate < this.#earliest) this.#earliest = sale.settlementDate;
  }
}

/** The name of the setting in the database. */
export const directSettlementSetting = 'direct_settlement';

interface DirectSaleRow extends RowDataPacket {
  number: number;
  account: string;
  kobo: string;
  settlement_date: string;
}
