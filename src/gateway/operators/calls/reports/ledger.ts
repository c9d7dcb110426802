import type { ExportLedgerRequest } from '../../../../gen/marina/admin/v1/reports_pb.ts';
import type { Database } from '../../../store/database.ts';
import type { LedgerEntry, WalletSums } from '../../../trading/wallet/rules.ts';
import { listEntries, toEntry } from '../../../trading/wallet/store.ts';
import type { AdminCall } from '../call.ts';
import { askedDays } from './days.ts';
import { firstEntryAt, missingEntry, readHead, sumsAt } from './ledger-part.ts';
import { partnersOf } from './partners.ts';
import type { ReportForm, ReportsUnderWay } from './parts.ts';

interface LedgerLine extends WalletSums {
  readonly partnerId: string;
  readonly kind: 'opening' | 'entry' | 'closing';
  readonly entry?: LedgerEntry;
  /** How the entry changed each sum. */
  readonly change?: WalletSums;
}

/** How many entries are read at a time. */
const together = 200;

const form = {
  columns: [
    ...['partner_id', 'kind', 'sequence', 'at', 'id', 'type', 'amount_kobo'],
    ...['available_change_kobo', 'reserved_change_kobo', 'posted_change_kobo'],
    ...['available_kobo', 'reserved_kobo', 'posted_kobo', 'allocation', 'withdrawal', 'account', 'bank_reference'],
  ],
  toLines: ({ partnerId, kind, entry, change, ...after }: LedgerLine) => {
    const at = entry && new Date(entry.createdAt).toISOString();
    return [
      [
        ...[partnerId, kind, entry?.sequence, at, entry?.id, entry?.type, entry?.amountKobo],
        ...sumsOf(change),
        ...sumsOf(after),
        ...[entry?.allocation, entry?.withdrawal, entry?.account, entry?.bankReference],
      ].map((value) => String(value ?? '')),
    ];
  },
  toMessage: (lines: readonly LedgerLine[]) => ({
    lines: lines.map(({ entry, change, ...line }) => ({
      ...{ ...entry, at: entry?.createdAt, ...line },
      availableChangeKobo: change?.availableKobo,
      reservedChangeKobo: change?.reservedKobo,
      postedChangeKobo: change?.postedKobo,
    })),
  }),
} satisfies ReportForm<LedgerLine, object>;

/** The operators' call that exports the ledgers of all partners. */
export function ledgerReports(database: Database, underWay: ReportsUnderWay) {
  async function* pages(request: ExportLedgerRequest, signal: AbortSignal): AsyncGenerator<LedgerLine[]> {
    const days = askedDays(request);
    for await (const partnerId of partnersOf(database, request.partnerId, signal)) {
      const head = await readHead(database, partnerId);
      if (head === undefined) continue;
      const { lastSequence: last } = head;
      const first = await firstEntryAt(database, partnerId, days.from, { from: 1n, last });
      const end = await firstEntryAt(database, partnerId, days.until, { from: first, last });
      let sums = await sumsAt(database, partnerId, first - 1n);
      yield [{ partnerId, kind: 'opening', ...sums }];
      for (let after = first - 1n; after < end - 1n && !signal.aborted; ) {
        const rows = await database.read(listEntries(partnerId, after, together));
        const page = rows.map(toEntry).filter(({ sequence }) => sequence < end);
        const read = page.at(-1)?.sequence;
        if (read === undefined || read !== after + BigInt(page.length)) throw missingEntry(partnerId, after + 1n);
        yield page.map((entry) => {
          const line = toLine(sums, entry);
          sums = onlySums(line);
          return line;
        });
        after = read;
      }
      yield [{ partnerId, kind: 'closing', ...sums }];
    }
  }

  return {
    exportLedger: (request: ExportLedgerRequest, call: AdminCall, signal: AbortSignal) =>
      underWay.messages(call, request.format, form, signal, (ending) => pages(request, ending)),
  };
}

/** The change is that of the sums, so it is right for the types of every version. */
function toLine(before: WalletSums, entry: LedgerEntry): LedgerLine {
  const { partnerId, availableKobo, reservedKobo, postedKobo } = entry;
  const change = {
    availableKobo: availableKobo - before.availableKobo,
    reservedKobo: reservedKobo - before.reservedKobo,
    postedKobo: postedKobo - before.postedKobo,
  };
  return { partnerId, kind: 'entry', entry, change, availableKobo, reservedKobo, postedKobo };
}

function onlySums({ availableKobo, reservedKobo, postedKobo }: WalletSums): WalletSums {
  return { availableKobo, reservedKobo, postedKobo };
}

function sumsOf(sums: WalletSums | undefined) {
  return [sums?.availableKobo, sums?.reservedKobo, sums?.postedKobo];
}
