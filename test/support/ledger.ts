import { status } from '@grpc/grpc-js';
import type { Database } from '../../src/gateway/store/database.ts';
import { WalletSeals, walletSealUse } from '../../src/gateway/trading/wallet/store.ts';
import { type LedgerFault, LedgerFaultKind } from '../../src/gen/marina/admin/v1/wallets_pb.ts';
import { keysFor, parseKeyRing } from '../../src/kit/key-ring.ts';
import { fixed } from '../../src/kit/watched-files.ts';
import { creditWallet as provisionCredit } from '../../src/sandbox/provision.ts';
import type { adminClient } from './admin.ts';
import { secretKey } from './keys.ts';

/** The seals of the gateways of tests. */
export function walletSeals(acceptsUnsealed = true): WalletSeals {
  return new WalletSeals(keysFor(fixed(parseKeyRing(secretKey)), walletSealUse), 'sandbox', acceptsUnsealed);
}

/** Records a payment for a gateway of a test, with its entry of the audit. */
export function creditWallet(
  database: Database,
  credit: { partnerId: string; amountKobo: bigint; bankReference: string },
): Promise<void> {
  return provisionCredit(database, { ...credit, secretKey });
}

/** Walks a partner's whole ledger, and returns what is wrong with it. */
export async function verifyLedger(admin: ReturnType<typeof adminClient>, partnerId: string): Promise<string[]> {
  const faults: LedgerFault[] = [];
  for (let afterSequence = 0n; ; ) {
    try {
      const walk = await admin.wallets.verifyLedger({ partnerId, afterSequence }, admin.options);
      faults.push(...walk.faults);
      if (walk.complete) break;
      afterSequence = walk.lastSequence;
    } catch (error) {
      // A replica walks one ledger at a time, and another test's may be under way.
      if ((error as { code?: number }).code !== status.RESOURCE_EXHAUSTED) throw error;
    }
  }
  return faults.map(({ kind, sequence, detail }) => `${LedgerFaultKind[kind]} ${sequence}: ${detail}`);
}
