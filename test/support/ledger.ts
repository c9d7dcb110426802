import { status } from '@grpc/grpc-js';
import { type LedgerFault, LedgerFaultKind } from '../../src/gen/marina/admin/v1/wallets_pb.ts';
import type { adminClient } from './admin.ts';

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
