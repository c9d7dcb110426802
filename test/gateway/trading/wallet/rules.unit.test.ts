import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  availableChange,
  checkedFaults,
  emptyLedger,
  entryFaults,
  headAt,
  headFaults,
  type LedgerEntry,
  type LedgerFault,
  type LedgerFaultWord,
  type LedgerHead,
  movements,
  nextEntry,
  type Transfer,
  type TransferTypeWord,
} from '../../../../src/gateway/trading/wallet/rules.ts';
import { feeEntry } from '../../../support/other-version.ts';
import { fc } from '../../../support/properties.ts';

const createdAt = Date.UTC(2026, 2, 2, 9);
const types = Object.keys(movements) as TransferTypeWord[];

function made(type: TransferTypeWord, amountKobo: bigint, at: number): Transfer {
  return {
    id: `wtr_${at.toString().padStart(20, 'a')}`,
    type,
    amountKobo,
    allocation: ['reserve', 'post', 'return'].includes(type) ? `alc_${at}` : null,
    withdrawal: type === 'withdrawal' ? `wdr_${at}` : null,
    account: ['post', 'withdrawal'].includes(type) ? 'C1' : null,
    bankReference: ['credit', 'debit', 'credit_reversal'].includes(type) ? `bank ${at}` : null,
    reverses: type === 'credit_reversal' ? 1n : null,
    createdAt: createdAt + at,
  };
}

/** A ledger of those transfers that can be, one after the other. */
function ledgerOf(wanted: readonly (readonly [TransferTypeWord, bigint])[]): LedgerEntry[] {
  const entries: LedgerEntry[] = [];
  let head = emptyLedger('par_1');
  for (const [at, [type, amount]] of wanted.entries()) {
    try {
      const entry = nextEntry(head, made(type, amount, at));
      entries.push(entry);
      head = headAt(entry);
    } catch {
      // It would take what is not there.
    }
  }
  return entries;
}

/** Everything that is wrong with entries as they are stored, read in the order of their numbers. */
function faultsOf(entries: readonly LedgerEntry[], wallet: LedgerHead) {
  let before = emptyLedger('par_1');
  const faults = [...entries]
    .sort((one, other) => Number(one.sequence - other.sequence))
    .flatMap((entry) => {
      const found = entryFaults(before, entry);
      before = headAt(entry);
      return found;
    });
  return [...faults, ...headFaults(wallet, before, before.lastSequence)];
}

const anyLedger = fc
  .array(fc.tuple(fc.constantFrom(...types), fc.bigInt({ min: 1n, max: 1_000n })), { minLength: 5, maxLength: 60 })
  .map((wanted) => ledgerOf([['credit', 5_000n], ['reserve', 400n], ['credit', 10n], ...wanted]));

function lastOf(entries: readonly LedgerEntry[]): LedgerEntry {
  const last = entries.at(-1);
  assert.ok(last);
  return last;
}

/** The hash of an entry, written down once more: existing ledgers must stay provable. */
function hashOf(entry: LedgerEntry, type: string = entry.type): Buffer {
  const { partnerId, previousHash, id, amountKobo, availableKobo, reservedKobo, postedKobo } = entry;
  const { allocation, account, bankReference, createdAt } = entry;
  const amounts = [amountKobo, availableKobo, reservedKobo, postedKobo].map(String);
  const words = [allocation, account, bankReference, new Date(createdAt).toISOString()];
  const text = JSON.stringify([partnerId, previousHash.toString('hex'), id, type, ...amounts, ...words]);
  return createHash('sha256').update(text).digest();
}

function isNamed(faults: readonly LedgerFault[], kind: LedgerFaultWord, sequence: number): boolean {
  return faults.some((fault) => fault.kind === kind && fault.sequence === BigInt(sequence));
}

function named(faults: readonly LedgerFault[]): string {
  return `[${faults.map(({ kind, sequence }) => `${kind} at ${sequence}`)}]`;
}

describe('the ledger', () => {
  it('holds every kobo that came in and did not go out in exactly one place, and never less than none', () => {
    fc.assert(
      fc.property(anyLedger, (entries) => {
        let cameIn = 0n;
        let available = 0n;
        for (const entry of entries) {
          if (entry.type === 'credit' || entry.type === 'withdrawal') cameIn += entry.amountKobo;
          if (entry.type === 'debit' || entry.type === 'credit_reversal') cameIn -= entry.amountKobo;
          available += availableChange(entry);
          const { availableKobo, reservedKobo, postedKobo } = entry;
          const sums = `${availableKobo} + ${reservedKobo} + ${postedKobo}`;
          const at = `after entry ${entry.sequence}, a ${entry.type} of ${entry.amountKobo},`;
          assert.equal(availableKobo, available, `${at} ${available} should be available: ${sums}`);
          assert.equal(availableKobo + reservedKobo + postedKobo, cameIn, `${at} ${cameIn} came in: ${sums}`);
          assert.ok(availableKobo >= 0n && reservedKobo >= 0n && postedKobo >= 0n, `${at} a sum is negative: ${sums}`);
        }
      }),
    );
  });

  it('is proven when nothing was touched', () => {
    fc.assert(fc.property(anyLedger, (entries) => assert.deepEqual(faultsOf(entries, headAt(lastOf(entries))), [])));
  });

  it('names an entry of which anything was changed', () => {
    const changes: readonly ((entry: LedgerEntry) => Partial<LedgerEntry>)[] = [
      ({ amountKobo }) => ({ amountKobo: amountKobo + 1n }),
      ({ id }) => ({ id: `${id.slice(0, -1)}z` }),
      ({ type }) => ({ type: type === 'post' ? 'return' : 'post' }),
      () => ({ type: 'gift' as TransferTypeWord }),
      ({ availableKobo }) => ({ availableKobo: availableKobo + 1n }),
      ({ reservedKobo }) => ({ reservedKobo: reservedKobo + 1n }),
      ({ postedKobo }) => ({ postedKobo: postedKobo + 1n }),
      () => ({ allocation: 'alc_other' }),
      () => ({ account: 'C2' }),
      () => ({ bankReference: 'another' }),
      ({ createdAt: at }) => ({ createdAt: at + 1 }),
      () => ({ partnerId: 'par_2' }),
      () => ({ previousHash: Buffer.alloc(32, 7) }),
      () => ({ hash: Buffer.alloc(32, 7) }),
    ];
    fc.assert(
      fc.property(anyLedger, fc.nat(), fc.constantFrom(...changes), (entries, nat, change) => {
        const at = nat % entries.length;
        const touched = entries.map((entry, index) => (index === at ? { ...entry, ...change(entry) } : entry));
        const faults = faultsOf(touched, headAt(lastOf(entries)));
        assert.ok(isNamed(faults, 'changed', at + 1), `entry ${at + 1} was changed, and named was ${named(faults)}`);
      }),
    );
  });

  it("calls an entry of another version's type whole, unless its hash, its place or its sums are wrong", () => {
    fc.assert(
      fc.property(anyLedger, (entries) => {
        const head = headAt(lastOf(entries));
        const createdAt = lastOf(entries).createdAt;
        const fee = { ...feeEntry(head, { id: 'wtr_fee', amountKobo: 0n, createdAt }), id: 'wtr_fee', createdAt };
        const none = { allocation: null, account: null, bankReference: null, partnerId: head.partnerId };
        const entry = { ...fee, ...none } as unknown as LedgerEntry;
        assert.deepEqual(entryFaults(head, entry), []);
        assert.equal(entryFaults(head, { ...entry, amountKobo: 1n })[0]?.kind, 'changed');
        assert.equal(entryFaults(emptyLedger(head.partnerId), { ...entry, sequence: 1n })[0]?.kind, 'reordered');
      }),
    );
  });

  it('names entries that are missing, the last ones too', () => {
    fc.assert(
      fc.property(anyLedger, fc.nat(), (entries, nat) => {
        const at = nat % entries.length;
        const faults = faultsOf(entries.toSpliced(at, 1), headAt(lastOf(entries)));
        assert.deepEqual(
          faults.map(({ kind, sequence }) => [kind, sequence]),
          [['missing', BigInt(at + 1)]],
        );
      }),
    );
  });

  it('names entries that changed places, or that were renumbered around one that is gone', () => {
    fc.assert(
      fc.property(anyLedger, fc.nat(), (entries, nat) => {
        const at = nat % (entries.length - 1);
        const swapped = entries.map((entry, index) => ({
          ...entry,
          sequence: BigInt(index === at ? at + 2 : index === at + 1 ? at + 1 : index + 1),
        }));
        const faults = faultsOf(swapped, headAt(lastOf(entries)));
        const both = isNamed(faults, 'reordered', at + 1) && isNamed(faults, 'reordered', at + 2);
        assert.ok(both, `entries ${at + 1} and ${at + 2} changed places, and named was ${named(faults)}`);
        const renumbered = entries.toSpliced(at, 1).map((entry, index) => ({ ...entry, sequence: BigInt(index + 1) }));
        const found = faultsOf(renumbered, headAt(lastOf(entries)));
        assert.ok(isNamed(found, 'reordered', at + 1), `entry ${at + 1} is gone, and named was ${named(found)}`);
      }),
    );
  });

  it('is not proven by a wallet that says another sum, another end or fewer entries', () => {
    const entries = ledgerOf([
      ['credit', 100n],
      ['reserve', 30n],
      ['post', 30n],
    ]);
    const wallet = headAt(lastOf(entries));
    const kinds = (changed: Partial<LedgerHead>) =>
      faultsOf(entries, { ...wallet, ...changed }).map(({ kind }) => kind);
    for (const sum of ['availableKobo', 'reservedKobo', 'postedKobo'] as const) {
      const found = kinds({ [sum]: wallet[sum] + 1n });
      assert.deepEqual(found, ['wrong_sum'], `a wallet whose ${sum} is 1 too high was answered [${found}]`);
    }
    assert.deepEqual(kinds({ lastHash: Buffer.alloc(32, 1) }), ['changed']);
    assert.deepEqual(kinds({ lastSequence: 2n }), ['wrong_sum']);
    assert.deepEqual(kinds({ lastSequence: 4n }), ['missing']);
  });

  it('is not proven if an earlier check found another entry, or entries that are gone', () => {
    const entries = ledgerOf([1n, 2n, 3n].map((amount) => ['credit', amount]));
    const [, second] = entries;
    assert.ok(second !== undefined);
    const found = { sequence: 2n, hash: second.hash };
    const other = { sequence: 2n, hash: Buffer.alloc(32, 1) };
    assert.deepEqual(
      entries.flatMap((entry) => [...checkedFaults(undefined, entry), ...checkedFaults(found, entry)]),
      [],
    );
    assert.deepEqual(
      entries.flatMap((entry) => checkedFaults(other, entry)).map(({ kind, sequence, id }) => [kind, sequence, id]),
      [['changed', 2n, second.id]],
    );

    const end = headAt(lastOf(entries));
    const details = (sequence: bigint) => headFaults(end, end, 3n, { ...found, sequence }).map(({ detail }) => detail);
    assert.deepEqual(details(3n), []);
    assert.deepEqual(details(4n), ['entry 4 is missing, which an earlier check found']);
    assert.deepEqual(details(6n), ['entries 4 to 6 are missing, which an earlier check found']);
  });

  it('names how many entries are missing', () => {
    const entries = ledgerOf([1n, 2n, 3n, 4n, 5n].map((amount) => ['credit', amount]));
    const details = (without: readonly number[]) =>
      faultsOf(
        entries.filter((_, at) => !without.includes(at)),
        headAt(lastOf(entries)),
      ).map(({ detail }) => detail);
    assert.deepEqual(details([2]), ['entry 3 is missing']);
    assert.deepEqual(details([1, 2]), ['entries 2 to 3 are missing']);
    assert.deepEqual(details([3, 4]), ['entries 4 to 5 are missing']);
  });

  it('names an entry that no ledger can have, though its hash was made with it', () => {
    const before = headAt(
      lastOf(
        ledgerOf([
          ['credit', 100n],
          ['reserve', 60n],
          ['post', 20n],
        ]),
      ),
    );
    const good = nextEntry(before, made('post', 10n, 9));
    assert.equal(hashOf(good).toString('hex'), good.hash.toString('hex'), 'the form of the hash is kept for good');
    const forged: [Partial<LedgerEntry>, RegExp][] = [
      [{ type: 'return' }, /return has no account/],
      [{ amountKobo: 0n }, /not positive/],
      [{ amountKobo: -10n }, /not positive/],
      [{ account: null }, /needs its account/],
      [{ allocation: null }, /needs its allocation/],
      [{ bankReference: 'x' }, /has no bank reference/],
      [{ reverses: 1n }, /has no reversed credit/],
      [{ availableKobo: -1n }, /negative/],
      [{ reservedKobo: -1n }, /negative/],
      [{ postedKobo: -1n }, /negative/],
      [{ postedKobo: 9n * 10n ** 18n }, /too large/],
    ];
    for (const [change, detail] of forged) {
      const entry = { ...good, ...change };
      const found = entryFaults(before, { ...entry, hash: hashOf(entry) });
      assert.ok(isNamed(found, 'changed', 4), `${Object.keys(change)} was forged, and named was ${named(found)}`);
      assert.match(found[0]?.detail ?? '', detail);
    }
  });

  it('holds up to 9 × 10^18 kobo in all three places together, and not one more', () => {
    const most = 9n * 10n ** 18n;
    for (const [available, reserved, posted] of [
      [most - 1n, 0n, 0n],
      [0n, most - 1n, 0n],
      [0n, 0n, most - 1n],
      [most - 3n, 1n, 1n],
    ] as const) {
      const head = { ...emptyLedger('par_1'), availableKobo: available, reservedKobo: reserved, postedKobo: posted };
      const sums = `with ${available} + ${reserved} + ${posted}`;
      assert.doesNotThrow(() => nextEntry(head, made('credit', 1n, 1)), `1 kobo more was refused ${sums}`);
      assert.throws(() => nextEntry(head, made('credit', 2n, 1)), /too large/, `2 kobo more were taken ${sums}`);
    }
  });

  it('names the entry after which any of the three sums does not follow from those before it', () => {
    const before = headAt(lastOf(ledgerOf([['credit', 100n]])));
    for (const sum of ['availableKobo', 'reservedKobo', 'postedKobo'] as const) {
      // Whole in itself, hash and all, but made from a sum that nobody booked.
      const entry = nextEntry({ ...before, [sum]: before[sum] + 1n }, made('reserve', 30n, 9));
      const found = entryFaults(before, entry).map(({ kind, sequence }) => `${kind} at ${sequence}`);
      assert.deepEqual(found, ['wrong_sum at 2'], `an entry whose ${sum} is 1 too high was answered [${found}]`);
    }
  });

  it('takes debits and reversals from what is available, to the last kobo and not one more', () => {
    const head = { ...emptyLedger('par_1'), availableKobo: 100n, reservedKobo: 7n, postedKobo: 9n };
    for (const type of ['debit', 'credit_reversal'] as const) {
      const { availableKobo, reservedKobo, postedKobo } = nextEntry(head, made(type, 100n, 1));
      assert.deepEqual([availableKobo, reservedKobo, postedKobo], [0n, 7n, 9n], type);
      assert.equal(availableChange(made(type, 100n, 1)), -100n, type);
      assert.throws(() => nextEntry(head, made(type, 101n, 1)), /negative/, type);
      assert.throws(
        () => nextEntry(head, { ...made(type, 1n, 1), bankReference: null }),
        /needs its bank reference/,
        type,
      );
      const other = { reverses: type === 'debit' ? 1n : null };
      assert.throws(() => nextEntry(head, { ...made(type, 1n, 1), ...other }), /reversed credit/, type);
    }
  });

  it('makes the hash of a reversal of its stored type, so that a version which does not know it finds it right', () => {
    const head = headAt(lastOf(ledgerOf([['credit', 100n]])));
    const reversal = nextEntry(head, made('credit_reversal', 60n, 9));
    assert.deepEqual(reversal.hash, hashOf(reversal, 'credit_r'));
    const asRead = { ...reversal, type: 'credit_r' as TransferTypeWord };
    assert.deepEqual(entryFaults(head, asRead), []);
    assert.deepEqual(nextEntry(head, made('debit', 60n, 9)).hash, hashOf(nextEntry(head, made('debit', 60n, 9))));
  });

  it('takes no entry that would take what is not there, or has not what its type needs', () => {
    const head = headAt(lastOf(ledgerOf([['credit', 100n]])));
    const cannot: Partial<Transfer>[] = [
      { amountKobo: 101n },
      { amountKobo: 0n },
      { amountKobo: -1n },
      { type: 'post' },
      { type: 'return' },
      { type: 'credit' },
      { account: 'C1' },
      { bankReference: 'x' },
      { allocation: null },
    ];
    const good = made('reserve', 100n, 9);
    assert.equal(nextEntry(head, good).availableKobo, 0n);
    for (const change of cannot) assert.throws(() => nextEntry(head, { ...good, ...change }), /cannot be/);
    assert.throws(() => nextEntry(head, made('credit', 9n * 10n ** 18n, 9)), /too large/);
  });
});
