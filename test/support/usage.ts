import { statement } from '../../src/gateway/store/statement.ts';
import type { TestGateway, TestPartner } from './gateway.ts';

/** Reads the amount that a partner's orders count against the day's limit, in kobo. */
export async function usedKobo({ database }: TestGateway, { id }: TestPartner): Promise<string> {
  const rows = await database.read(
    statement(`SELECT used_kobo FROM usage_days WHERE partner_id = ? AND kind = 'orders'`, id),
  );
  return String(rows[0]?.used_kobo ?? 0);
}
