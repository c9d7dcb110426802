import { randomInt } from 'node:crypto';
import { findShownKey, toShownKey } from '../gateway/edge/auth/key-store.ts';
import { keyMacKeys, parseKey } from '../gateway/edge/auth/keys.ts';
import { sealKeys } from '../gateway/operators/secret-keys/sealed-keys.ts';
import { sealWallets } from '../gateway/operators/secret-keys/sealed-wallets.ts';
import { type Database, openDatabase } from '../gateway/store/database.ts';
import { statement } from '../gateway/store/statement.ts';
import { AccountStatus } from '../gen/marina/broker/v1/orders_pb.ts';
import { Feature, Scope } from '../gen/marina/options/v1/options_pb.ts';
import { Controls } from '../gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../kit/grpc-client.ts';
import { parseKeyRing } from '../kit/key-ring.ts';
import { fixed } from '../kit/watched-files.ts';
import { createKey, createPartner, creditWallet, linkAccount, setFeatures } from './provision.ts';
import type { SandboxPartner } from './sandbox-file.ts';

/** A partner before its events have a place to go. */
export type SeededPartner = Omit<SandboxPartner, 'webhook_secret' | 'receiver_url'>;

const names = ['Lagoon Invest', 'Harmattan Capital'];
const accountsEach = 2;
/** The credit of each wallet: 100 million naira. */
const walletKobo = 10_000_000_000n;
const allFeatures = [Feature.ACCOUNT_OPENING, Feature.WITHDRAWALS];
const allScopes = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.KEYS, Scope.WITHDRAW];

export interface SeedOptions {
  ownerUrl: string;
  restUrl: string;
  simulatorAddress: string;
  /** The gateway's `MARINA_SECRET_KEY`. */
  secretKey: string;
  /** The partners of an earlier start: what still works of them stays. */
  kept: readonly SeededPartner[];
}

/** Two partners, each with a key that works, two accounts that can trade, money in the wallet, and every feature. */
export async function seedPartners(options: SeedOptions): Promise<SeededPartner[]> {
  const database = await openDatabase({ url: options.ownerUrl, environment: 'sandbox', poolSize: 2 });
  try {
    // The seed seals the rows that an earlier version stored in this sandbox, though its gateways refuse them.
    const sealing = { database, ring: parseKeyRing(options.secretKey), print: () => {}, acceptsUnsealed: true };
    await sealKeys(sealing, []);
    const partners: SeededPartner[] = [];
    for (const [index, name] of names.entries()) {
      const partner = await seedPartner(database, options, name, options.kept[index]);
      // The reference makes it one payment, however often the sandbox is started.
      const bankReference = `sandbox ${partner.id}`;
      await creditWallet(database, {
        partnerId: partner.id,
        amountKobo: walletKobo,
        bankReference,
        secretKey: options.secretKey,
      });
      partners.push(partner);
    }
    await sealWallets(sealing);
    await openAccounts(
      options.simulatorAddress,
      partners.flatMap(({ accounts }) => accounts),
    );
    return partners;
  } finally {
    await database.close();
  }
}

async function seedPartner(
  database: Database,
  options: SeedOptions,
  name: string,
  kept: SeededPartner | undefined,
): Promise<SeededPartner> {
  const { secretKey } = options;
  if (kept !== undefined && (await isStored(database, kept.id))) {
    const accounts = await linkAccounts(database, kept.id, await linkedOf(database, kept));
    const partner = { ...kept, accounts, account: accounts[0] ?? '' };
    await setFeatures(database, kept.id, allFeatures); // Before the key is tried, and remembered with what it may do.
    if ((await hasAllScopes(database, kept, secretKey)) && (await isKeyGood(options.restUrl, kept.key))) return partner;
    const { key } = await createKey(database, { partnerId: kept.id, scopes: allScopes, secretKey });
    if (await isKeyGood(options.restUrl, key)) return { ...partner, key };
  }
  const id = await createPartner(database, { name, features: allFeatures });
  const { key } = await createKey(database, { partnerId: id, scopes: allScopes, secretKey });
  const accounts = await linkAccounts(database, id, []);
  const [account = ''] = accounts;
  return { id, name, key, accounts, account };
}

/** Adds accounts to those that a partner has, which an operator may have unlinked, until it has enough. */
async function linkAccounts(database: Database, partnerId: string, linked: readonly string[]): Promise<string[]> {
  const accounts = [...linked];
  while (accounts.length < accountsEach) {
    // Ten digits of chance: an account belongs to one partner, also where several sandboxes share a database.
    const account = `C${randomInt(10 ** 10)
      .toString()
      .padStart(10, '0')}`;
    await linkAccount(database, { partnerId, account });
    accounts.push(account);
  }
  return accounts;
}

async function isStored(database: Database, partnerId: string): Promise<boolean> {
  return (await database.read(statement('SELECT id FROM partners WHERE id = ?', partnerId))).length > 0;
}

/** The accounts of an earlier start that the partner still has. */
export async function linkedOf(
  database: Pick<Database, 'read'>,
  partner: Pick<SeededPartner, 'id' | 'accounts'>,
): Promise<string[]> {
  const rows = await database.read(statement('SELECT account FROM accounts WHERE partner_id = ?', partner.id));
  const stored = new Set(rows.map((row) => row.account));
  return partner.accounts.filter((account) => stored.has(account));
}

/** Whether a partner's key has every scope. One that an earlier version made may lack some. */
async function hasAllScopes(database: Database, { id, key }: SeededPartner, secretKey: string): Promise<boolean> {
  const parts = parseKey(database.environment, keyMacKeys(fixed(parseKeyRing(secretKey))), key);
  if (typeof parts === 'string') return false;
  const [row] = await database.read(findShownKey(id, parts.id));
  const scopes = new Set(row === undefined ? [] : toShownKey(row).scopes);
  return allScopes.every((scope) => scopes.has(scope));
}

async function isKeyGood(restUrl: string, key: string): Promise<boolean> {
  const response = await fetch(`${restUrl}/v1/orders?limit=1`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(10_000),
  });
  await response.body?.cancel();
  if ([200, 401, 403].includes(response.status)) return response.status === 200;
  throw new Error(`the gateway answered ${response.status} to a read`);
}

/** The simulator has its own database, so the accounts are set at every start. */
async function openAccounts(simulatorAddress: string, accounts: readonly string[]): Promise<void> {
  const controls = createGrpcClient(Controls, simulatorAddress);
  try {
    for (const account of accounts) {
      await controls.setAccount({ account, status: AccountStatus.ACTIVE }, { timeoutMs: 10_000 });
    }
  } finally {
    controls.close();
  }
}
