import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Database } from '../db/database.ts';
import {
  type Credit,
  CreditSchema,
  type CreditWalletRequest,
  type CreditWalletResponse,
  CreditWalletResponseSchema,
  type LedgerFaultKind,
  LedgerFaultKindSchema,
  type ListCreditsRequest,
  type ListCreditsResponse,
  ListCreditsResponseSchema,
  type ListWalletsRequest,
  type ListWalletsResponse,
  ListWalletsResponseSchema,
  type VerifyLedgerRequest,
  type VerifyLedgerResponse,
  VerifyLedgerResponseSchema,
} from '../gen/marina/admin/v1/wallets_pb.ts';
import type { Clock } from '../lib/clock.ts';
import { enumWords } from '../lib/enums.ts';
import type { IdMaker } from '../lib/ids.ts';
import type { LedgerEntry } from '../wallet/rules.ts';
import { listCredits, listWallets, toEntry, wallets } from '../wallet/store.ts';
import { audit } from './audit.ts';
import { AdminError, type Operator } from './call.ts';
import { recordCredit, requirePartner } from './credit.ts';
import { walkLedger } from './ledger.ts';

const faultWords = enumWords<typeof LedgerFaultKind>(LedgerFaultKindSchema);

const usuallyListed = 100;

export interface WalletAdminParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
}

/** The operators' calls on wallets. */
export function walletAdminHandlers({ database, clock, ids }: WalletAdminParts) {
  let verifying = false;

  async function creditWallet(request: CreditWalletRequest, operator: Operator): Promise<CreditWalletResponse> {
    const { partnerId, amountKobo, bankReference } = request;
    const id = ids.object('wtr');
    const createdAt = clock.now();
    const detail = { entry: id, amountKobo: amountKobo.toString(), bankReference };
    const { entry, recorded } = await recordCredit(database, { id, partnerId, amountKobo, bankReference, createdAt }, [
      audit({ at: createdAt, operator, action: 'Wallets.CreditWallet', partnerId, subject: partnerId, detail }),
    ]);
    return create(CreditWalletResponseSchema, { recorded, credit: toCredit(entry) });
  }

  async function listCredits_(request: ListCreditsRequest): Promise<ListCreditsResponse> {
    const { partnerId, beforeSequence } = request;
    const limit = pageSize(request.limit);
    await requirePartner(database, partnerId);
    const rows = await database.read(listCredits(partnerId, beforeSequence, limit + 1));
    const credits = rows.slice(0, limit).map((row) => toCredit(toEntry(row)));
    return create(ListCreditsResponseSchema, { credits, hasMore: rows.length > limit });
  }

  async function listWallets_(request: ListWalletsRequest): Promise<ListWalletsResponse> {
    const limit = pageSize(request.limit);
    const rows = await database.read(listWallets(request.afterPartnerId, limit + 1));
    return create(ListWalletsResponseSchema, {
      wallets: rows.slice(0, limit).map(wallets.all.read),
      hasMore: rows.length > limit,
    });
  }

  async function verifyLedger({ partnerId, afterSequence }: VerifyLedgerRequest): Promise<VerifyLedgerResponse> {
    if (verifying) throw new AdminError(status.RESOURCE_EXHAUSTED, 'another ledger is being walked: call again');
    verifying = true;
    try {
      const walk = await walkLedger(database, partnerId, afterSequence);
      if (walk === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such partner, or no such entry');
      const { complete, faults, entries, last } = walk;
      return create(VerifyLedgerResponseSchema, {
        complete,
        faults: faults.map(({ kind, ...fault }) => ({ ...fault, kind: faultWords.value(kind) })),
        entries: BigInt(entries),
        lastSequence: last.lastSequence,
        lastHash: last.lastHash,
      });
    } finally {
      verifying = false;
    }
  }

  return { creditWallet, listCredits: listCredits_, listWallets: listWallets_, verifyLedger };
}

function toCredit(entry: LedgerEntry): Credit {
  return create(CreditSchema, {
    id: entry.id,
    sequence: entry.sequence,
    amountKobo: entry.amountKobo,
    bankReference: entry.bankReference ?? '',
    createdAt: timestampFromMs(entry.createdAt),
    availableAfterKobo: entry.availableKobo,
  });
}

function pageSize(limit: number): number {
  return limit === 0 ? usuallyListed : limit;
}
