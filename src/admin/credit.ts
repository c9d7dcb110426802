import { status } from '@grpc/grpc-js';
import type { Database } from '../db/database.ts';
import { found, sharing, together } from '../db/facts.ts';
import { type Decision, type Statement, statement } from '../db/statement.ts';
import { type LedgerEntry, mostInWalletKobo } from '../wallet/rules.ts';
import { findCredit, toEntry, transfer, wallet } from '../wallet/store.ts';
import { AdminError } from './call.ts';

/** A payment to record. */
export interface NewCredit {
  /** The id its entry gets. */
  readonly id: string;
  readonly partnerId: string;
  readonly amountKobo: bigint;
  readonly bankReference: string;
  readonly createdAt: number;
}

export interface RecordedCredit {
  readonly entry: LedgerEntry;
  /** False: an earlier call recorded it. */
  readonly recorded: boolean;
}

const mostCreditKobo = 10n ** 15n;
const bankReferences = /^[!-~](?:[ -~]{0,62}[!-~])?$/;
const duplicateEntry = 1062;

/** Records a payment once for its bank reference, with what else is to be written when it is new. Throws an AdminError. */
export async function recordCredit(
  database: Database,
  credit: NewCredit,
  writtenWithIt: readonly Statement[] = [],
): Promise<RecordedCredit> {
  const { partnerId, amountKobo, bankReference } = credit;
  if (amountKobo < 1n || amountKobo > mostCreditKobo) {
    throw new AdminError(status.INVALID_ARGUMENT, '`amount_kobo` must be 1 to 1,000,000,000,000,000');
  }
  if (!bankReferences.test(bankReference)) {
    throw new AdminError(
      status.INVALID_ARGUMENT,
      '`bank_reference` must be 1 to 64 printable ASCII characters, the first and last of them no space',
    );
  }
  await requirePartner(database, partnerId);
  try {
    return await database.inPartner(partnerId, {
      touches: [`bank reference ${bankReference}`],
      fact: together({
        prior: found(findCredit(bankReference), ([row]) => row),
        shared: sharing(wallet(partnerId)),
      }),
      decide: ({ prior }, partner): Decision<RecordedCredit> => {
        if (prior !== undefined) return { writes: [], result: { entry: same(prior, credit), recorded: false } };
        const { availableKobo, reservedKobo, postedKobo } = partner.get(wallet(partnerId)).head;
        if (availableKobo + reservedKobo + postedKobo + amountKobo > mostInWalletKobo) {
          throw new AdminError(status.FAILED_PRECONDITION, 'the wallet would hold more than 10^18 kobo in all');
        }
        const { id, createdAt } = credit;
        const entry = transfer(partner, {
          id,
          type: 'credit',
          amountKobo,
          allocation: null,
          account: null,
          bankReference,
          createdAt,
        });
        return { writes: writtenWithIt, result: { entry, recorded: true } };
      },
    });
  } catch (error) {
    // Two partners' locks are two: of a reference raced for two partners the database itself takes only one.
    if ((error as { errno?: number }).errno !== duplicateEntry) throw error;
    const [row] = await database.read(findCredit(bankReference));
    if (row === undefined) throw error;
    return { entry: same(row, credit), recorded: false };
  }
}

/** Throws where there is no such partner. */
export async function requirePartner(database: Database, partnerId: string): Promise<void> {
  const [row] = await database.read(statement('SELECT id FROM partners WHERE id = ?', partnerId));
  if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such partner');
}

/** The entry that an earlier call made, of the same payment. */
function same(row: Parameters<typeof toEntry>[0], { partnerId, amountKobo }: NewCredit): LedgerEntry {
  const entry = toEntry(row);
  if (entry.partnerId !== partnerId) {
    throw new AdminError(status.ALREADY_EXISTS, 'the bank reference is recorded for another partner');
  }
  if (entry.amountKobo !== amountKobo) {
    const amount = entry.amountKobo.toLocaleString('en-US');
    throw new AdminError(status.ALREADY_EXISTS, `the bank reference is recorded with another amount, ${amount} kobo`);
  }
  return entry;
}
