import { create } from '@bufbuild/protobuf';
import type { PartnerLimits } from '../gateway/edge/auth/caller.ts';
import { KeySeals, keySealUse } from '../gateway/edge/auth/key-seals.ts';
import { keyMacKeys, makeKey } from '../gateway/edge/auth/keys.ts';
import { featureList, insertKey, insertPartner, partners } from '../gateway/edge/auth/store.ts';
import { IdMaker } from '../gateway/edge/ids.ts';
import { askFor } from '../gateway/operators/calls/proposals/four-eyes.ts';
import { creditCall } from '../gateway/operators/calls/wallets.ts';
import type { Database } from '../gateway/store/database.ts';
import { insertAccount } from '../gateway/trading/accounts/store.ts';
import { WalletSeals, walletSealUse } from '../gateway/trading/wallet/store.ts';
import { CreditWalletRequestSchema } from '../gen/marina/admin/v1/wallets_pb.ts';
import type { Feature, Scope } from '../gen/marina/options/v1/options_pb.ts';
import { isAddressOrRange } from '../kit/addresses.ts';
import { SystemClock } from '../kit/clock.ts';
import { keysFor, parseKeyRing } from '../kit/key-ring.ts';
import { fixed } from '../kit/watched-files.ts';

const ids = new IdMaker(Date);

// The calls that seed the sandbox and tests. Only credits leave a trace in the audit: operators use the gateway's own
// calls.

/** Creates a partner and returns its id. Limits not given are the defaults; features not given are not enabled. */
export async function createPartner(
  database: Database,
  partner: { name: string; limits?: Partial<PartnerLimits>; features?: readonly Feature[] },
): Promise<string> {
  const id = ids.object('par');
  const { name, limits = {}, features = [] } = partner;
  await database.write(insertPartner({ id, name, limits, features, createdAt: Date.now() }));
  return id;
}

/** Enables features for a partner, and no others. Keys that were used lately learn of it within seconds. */
export async function setFeatures(database: Database, partnerId: string, features: readonly Feature[]): Promise<void> {
  await database.write(partners.set({ id: partnerId }, { features: featureList(features) }));
}

/** Creates a key and returns its id and its text, which cannot be had again. */
export async function createKey(
  database: Database,
  key: {
    partnerId: string;
    scopes: readonly Scope[];
    addresses?: readonly string[] | undefined;
    /** The gateway's `MARINA_SECRET_KEY`. */
    secretKey: string;
  },
): Promise<{ id: string; key: string }> {
  const addresses = key.addresses ?? [];
  for (const address of addresses) {
    if (!isAddressOrRange(address)) throw new Error(`${address} is neither an address nor a range`);
  }
  if (database.environment === 'live' && addresses.length === 0) {
    throw new Error('a live key needs at least one registered address or range');
  }
  const ring = fixed(parseKeyRing(key.secretKey));
  const seals = new KeySeals(keysFor(ring, keySealUse), database.environment, false);
  const { id, ...made } = makeKey(database.environment, keyMacKeys(ring), ids.keyHead());
  await database.write(
    insertKey(
      {
        id,
        partnerId: key.partnerId,
        secretHash: made.secretHash,
        macKey: made.macKey,
        scopes: key.scopes,
        addresses,
        createdAt: Date.now(),
      },
      seals,
    ),
  );
  return { id, key: made.key };
}

/** Makes an account one the partner can trade for. */
export async function linkAccount(database: Database, link: { partnerId: string; account: string }): Promise<void> {
  await database.write(insertAccount(link.partnerId, link.account.toUpperCase(), Date.now()));
}

/** Who makes the credits here, in the audit. */
const operator = 'provision';

/** Records a payment in a partner's wallet, once for its bank reference. */
export async function creditWallet(
  database: Database,
  credit: {
    partnerId: string;
    amountKobo: bigint;
    bankReference: string;
    /** The gateway's `MARINA_SECRET_KEY`. */
    secretKey: string;
  },
): Promise<void> {
  const { partnerId, amountKobo, bankReference } = credit;
  const seals = new WalletSeals(
    keysFor(fixed(parseKeyRing(credit.secretKey)), walletSealUse),
    database.environment,
    database.environment === 'sandbox',
  );
  const parts = { database, ids, clock: new SystemClock(), fourEyesAboveKobo: undefined };
  const call = creditCall(parts, seals);
  const request = create(CreditWalletRequestSchema, { partnerId, amountKobo, bankReference });
  await askFor(parts, call, request, { operator, action: call.name });
}
