import type { RowDataPacket } from 'mysql2/promise';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { WriterConnection } from '../store/database.ts';
import type { AccountFunds } from './funds.ts';

/** Reads what accounts have from the tables, if it is counted: sums of each account, not every deal. */
export async function loadFunds(connection: WriterConnection, funds: AccountFunds, today: string): Promise<void> {
  funds.clear();
  if (funds.settings === undefined) return;
  const settlements = await connection.read<SettlementRow>(
    `SELECT account, settlement_date, side, CAST(SUM(consideration_kobo) AS CHAR) AS kobo FROM deals
     GROUP BY account, settlement_date, side`,
  );
  for (const row of settlements) funds.addSettlement(row.account, row.settlement_date, row.side, BigInt(row.kobo));
  const held = await connection.read<SharesRow>(
    'SELECT account, symbol, CAST(quantity AS CHAR) AS shares FROM holdings WHERE quantity <> 0',
  );
  for (const { account, symbol, shares } of held) funds.addShares(account, symbol, BigInt(shares));
  const arriving = await connection.read<SharesRow & { settlement_date: string }>(
    `SELECT account, symbol, settlement_date, CAST(SUM(quantity) AS CHAR) AS shares FROM deals
     WHERE settlement_date > ? AND side = ? GROUP BY account, symbol, settlement_date`,
    [today, Side.BUY],
  );
  for (const row of arriving) funds.addArriving(row.account, row.symbol, row.settlement_date, BigInt(row.shares));
  const elsewhere = await connection.read<RowDataPacket & { account: string; shares: string }>(
    'SELECT account, CAST(shares AS CHAR) AS shares FROM shares_elsewhere',
  );
  for (const { account, shares } of elsewhere) funds.setSharesElsewhere(account, BigInt(shares));
}

interface SettlementRow extends RowDataPacket {
  account: string;
  settlement_date: string;
  side: Side;
  kobo: string;
}

interface SharesRow extends RowDataPacket {
  account: string;
  symbol: string;
  shares: string;
}
