import { setTimeout as delay } from 'node:timers/promises';
import { type KeyRing, keysFor } from '../../../kit/key-ring.ts';
import { fixed } from '../../../kit/watched-files.ts';
import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { headAt, type LedgerHead } from '../../trading/wallet/rules.ts';
import { toEntry, transfers, WalletSeals, walletSealUse, wallets } from '../../trading/wallet/store.ts';
import { walkLedger } from '../calls/ledger.ts';
import { type FirstSealOptions, resealRows, restMs, type SealCounts, type SealOptions } from './sealed-keys.ts';

interface StoredWallet {
  readonly head: LedgerHead;
  readonly seal: Buffer | null;
}

const maxTogether = 200;
/** How often a ledger is followed while a gateway of an earlier version goes on with it. */
const maxTries = 20;

/**
 * Seals each ledger up to its end, after it has walked all that is not sealed. A ledger with a fault is named and stays as it
 * is, and so does one that no gateway sealed to its end, while such rows are refused: nobody rightly wrote what is not sealed.
 * It may run at any time, and again after it was killed. Answers whether every ledger is sealed.
 */
export async function sealWallets({ database, ring, print, acceptsUnsealed }: FirstSealOptions): Promise<boolean> {
  const seals = sealsUnder(ring, database);
  const counts = { sealed: 0, before: 0, left: 0 };
  for await (const some of storedWallets(database)) {
    for (const stored of some) {
      const proof = seals.prove(stored.head, stored.seal);
      if (proof === 'sealed') {
        counts.before += 1;
        continue;
      }
      const isRefused = proof !== 'forged' && !acceptsUnsealed;
      const why = isRefused ? refusedRow : await sealOne(database, seals, stored);
      if (why === undefined) counts.sealed += 1;
      else {
        counts.left += 1;
        print(`the wallet of ${stored.head.partnerId} is not sealed: ${why}`);
      }
    }
    await delay(restMs);
  }
  print(`wallets: ${counts.sealed} sealed, ${counts.before} were sealed, ${counts.left} are not sealed`);
  return counts.left === 0;
}

const refusedRow =
  'its end is not sealed, and MARINA_UNSEALED_ROWS refuses such rows. Outside an upgrade somebody changed it: restore a backup';

/** Seals a ledger. Answers why not, if it cannot. */
async function sealOne(database: Database, seals: WalletSeals, found: StoredWallet): Promise<string | undefined> {
  const { partnerId } = found.head;
  let stored: StoredWallet | undefined = found;
  // An entry whose seal is right needs no second walk before it.
  let after = (await sealedEntry(database, seals, found))?.lastSequence ?? 0n;
  for (let tries = 0; tries < maxTries && stored !== undefined; tries += 1) {
    if (seals.prove(stored.head, stored.seal) === 'sealed') return undefined;
    for (let complete = false; !complete; ) {
      const walked = await walkLedger(database, partnerId, after, { seals });
      const [fault] = walked?.faults ?? [];
      if (walked === undefined) return `entry ${after} is missing`;
      if (fault !== undefined) return `entry ${fault.sequence} ${fault.id}: ${fault.detail}`;
      ({ complete } = walked);
      after = walked.last.lastSequence;
      if (complete && (await database.write(saveSeal(walked.last, stored.seal, seals.make(walked.last)))) > 0) {
        return undefined;
      }
      await delay(restMs);
    }
    stored = await readWallet(database, partnerId);
  }
  return 'it changed all the time: run this again';
}

/** Seals the wallets again that are sealed with a former secret. */
export function resealWallets({ database, ring, print }: SealOptions): Promise<void> {
  const seals = sealsUnder(ring, database);
  return resealRows('wallets', storedWallets(database), print, async (stored) => {
    const { seal } = stored;
    if (seal === null) return undefined;
    const end = await sealedEntry(database, seals, stored);
    if (end === undefined) return 'wrong';
    if (seals.secretOf(end, seal) === ring[0].id) return 'current';
    return (await database.write(replaceSeal(end, seal, seals.make(end)))) > 0 ? 'again' : 'changed';
  });
}

export async function countWalletSeals(database: Database, ring: KeyRing): Promise<SealCounts> {
  const seals = sealsUnder(ring, database);
  const bySecret = new Map<string, number>();
  const counts = { unsealed: 0, wrong: 0 };
  for await (const some of storedWallets(database)) {
    for (const stored of some) {
      const end = await sealedEntry(database, seals, stored);
      const secret = end && seals.secretOf(end, stored.seal);
      if (secret !== undefined) bySecret.set(secret, (bySecret.get(secret) ?? 0) + 1);
      else if (stored.seal !== null) counts.wrong += 1;
      if (stored.seal === null || (end !== undefined && end.lastSequence < stored.head.lastSequence)) {
        counts.unsealed += 1;
      }
    }
  }
  return { bySecret, ...counts };
}

/** The end of the part of a ledger that is sealed, if its seal is right. */
async function sealedEntry(
  database: Database,
  seals: WalletSeals,
  { head, seal }: StoredWallet,
): Promise<LedgerHead | undefined> {
  if (seal === null) return undefined;
  const proof = seals.prove(head, seal);
  if (proof === 'sealed') return head;
  if (proof === 'forged') return undefined;
  const sequence = seal.readBigUInt64BE();
  const [row] = await database.read(transfers.find({ partnerId: head.partnerId, sequence }));
  const end = row && headAt(toEntry(row));
  return end !== undefined && seals.secretOf(end, seal) !== undefined ? end : undefined;
}

async function* storedWallets(database: Database): AsyncGenerator<readonly StoredWallet[]> {
  for (let after = ''; ; ) {
    const rows = await database.read(
      statement(
        `SELECT ${wallets.all.list} FROM wallets WHERE partner_id > ? ORDER BY partner_id LIMIT ${maxTogether}`,
        after,
      ),
    );
    const some = rows.map(wallets.all.read).map(({ seal, ...head }) => ({ head, seal }));
    yield some;
    const last = some.at(-1);
    if (last === undefined) return;
    after = last.head.partnerId;
  }
}

async function readWallet(database: Database, partnerId: string): Promise<StoredWallet | undefined> {
  const [row] = await database.read(wallets.find({ partnerId }));
  if (row === undefined) return undefined;
  const { seal, ...head } = wallets.all.read(row);
  return { head, seal };
}

/** Seals the end of a ledger, unless it has another end or seal by now. */
function saveSeal(end: LedgerHead, before: Buffer | null, seal: Buffer): Statement {
  return wallets.set({ ...end, seal: before }, { seal });
}

/** Replaces a seal, unless a transaction has made another by now. */
function replaceSeal({ partnerId }: LedgerHead, before: Buffer, seal: Buffer): Statement {
  return wallets.set({ partnerId, seal: before }, { seal });
}

/** Entries that are not sealed are no fault: they are walked to be sealed. */
function sealsUnder(ring: KeyRing, database: Database): WalletSeals {
  return new WalletSeals(keysFor(fixed(ring), walletSealUse), database.environment, true);
}
