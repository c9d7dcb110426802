import { createHash } from 'node:crypto';
import type { LedgerHead } from '../../src/gateway/trading/wallet/rules.ts';

/** An entry that takes a fee from what is available, as a newer version adds it to a ledger. */
export function feeEntry(
  head: LedgerHead,
  { id, amountKobo, createdAt }: { id: string; amountKobo: bigint; createdAt: number },
) {
  const { partnerId, lastHash, lastSequence, reservedKobo, postedKobo } = head;
  const availableKobo = head.availableKobo - amountKobo;
  const text = JSON.stringify([
    partnerId,
    lastHash.toString('hex'),
    id,
    'fee',
    amountKobo.toString(),
    availableKobo.toString(),
    reservedKobo.toString(),
    postedKobo.toString(),
    null,
    null,
    null,
    new Date(createdAt).toISOString(),
  ]);
  return {
    sequence: lastSequence + 1n,
    type: 'fee',
    amountKobo,
    availableKobo,
    reservedKobo,
    postedKobo,
    previousHash: lastHash,
    hash: createHash('sha256').update(text).digest(),
  };
}
