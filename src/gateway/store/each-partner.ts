import { groupBy } from '../../kit/group.ts';

interface OfPartner {
  readonly partnerId: string;
}

/** The work for each partner. */
export interface EachPartner<Row extends OfPartner> {
  /** Finds the first rows of all partners but these. */
  readonly find: (without: readonly string[]) => Promise<readonly Row[]>;
  /** Changes the rows of one partner. */
  readonly change: (partnerId: string, rows: readonly Row[]) => Promise<void>;
  /** Is told of a partner whose rows could not be changed. */
  readonly failed: (partnerId: string, rows: readonly Row[], error: unknown) => void;
}

/**
 * Changes rows, one partner after the other. A partner whose rows are locked or damaged is left out from then on, so that it holds
 * up nobody else. Rows are found again after each failure, which throws if the database is away. Returns how many rows were found
 * of the partners that did not fail.
 */
export async function eachPartner<Row extends OfPartner>(work: EachPartner<Row>): Promise<number> {
  const without: string[] = [];
  for (;;) {
    const rows = await work.find(without);
    const failing = await firstFailing(rows, work);
    if (failing === undefined) return rows.length;
    without.push(failing);
  }
}

async function firstFailing<Row extends OfPartner>(
  rows: readonly Row[],
  { change, failed }: EachPartner<Row>,
): Promise<string | undefined> {
  for (const [partnerId, own] of groupBy(rows, (row) => row.partnerId)) {
    try {
      await change(partnerId, own);
    } catch (error) {
      failed(partnerId, own, error);
      return partnerId;
    }
  }
  return undefined;
}
