import { Metadata } from '@grpc/grpc-js';
import { Accounts } from '../../src/gen/marina/admin/v1/accounts_pb.ts';
import { Clock } from '../../src/gen/marina/admin/v1/clock_pb.ts';
import { Diagnostics } from '../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { Documents } from '../../src/gen/marina/admin/v1/documents_pb.ts';
import { Keys } from '../../src/gen/marina/admin/v1/keys_pb.ts';
import { Partners } from '../../src/gen/marina/admin/v1/partners_pb.ts';
import { Trading } from '../../src/gen/marina/admin/v1/trading_pb.ts';
import { Wallets } from '../../src/gen/marina/admin/v1/wallets_pb.ts';
import { Webhooks } from '../../src/gen/marina/admin/v1/webhooks_pb.ts';
import { AccountStatus } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Feature, Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import type { Controls } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../src/kit/grpc-client.ts';
import { operatorToken } from './gateway.ts';
import { patient } from './patience.ts';

/** The operators' calls of a gateway, and what to call them with. */
export function adminClient(adminPort: number, token = operatorToken) {
  const address = `127.0.0.1:${adminPort}`;
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  const accounts = createGrpcClient(Accounts, address);
  const partners = createGrpcClient(Partners, address);
  const clock = createGrpcClient(Clock, address);
  const diagnostics = createGrpcClient(Diagnostics, address);
  const documents = createGrpcClient(Documents, address);
  const trading = createGrpcClient(Trading, address);
  const keys = createGrpcClient(Keys, address);
  const wallets = createGrpcClient(Wallets, address);
  const webhooks = createGrpcClient(Webhooks, address);
  return {
    accounts,
    partners,
    clock,
    diagnostics,
    documents,
    trading,
    keys,
    wallets,
    webhooks,
    options: { timeoutMs: patient(10_000), metadata },
    close() {
      accounts.close();
      partners.close();
      clock.close();
      diagnostics.close();
      documents.close();
      trading.close();
      keys.close();
      wallets.close();
      webhooks.close();
    },
  };
}

/** Makes a partner with a key and an active account by the operators' calls, as any version of the gateway can. */
export async function newPartnerByOperator(
  { partners, keys, accounts, options }: ReturnType<typeof adminClient>,
  controls: GrpcClient<typeof Controls>,
  name: string,
): Promise<{ id: string; key: string; account: string }> {
  const limits = {
    requestsPerSecond: 1_000_000,
    requestsBurst: 1_000_000,
    requestsUnderWay: 100,
    ordersKoboPerDay: 10n ** 15n,
    allocationsKoboPerDay: 10n ** 15n,
  };
  const made = await partners.createPartner({ name, limits, features: [Feature.ACCOUNT_OPENING] }, options);
  const id = made.partner?.id ?? '';
  const scopes = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.KEYS];
  const { secret: key } = await keys.createKey({ partnerId: id, scopes }, options);
  const account = `U${id.slice(-12).toUpperCase()}`;
  await accounts.linkAccount({ partnerId: id, account }, options);
  await controls.setAccount({ account, status: AccountStatus.ACTIVE }, { timeoutMs: patient(10_000) });
  return { id, key, account };
}
