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
import { createGrpcClient } from '../../src/lib/grpc-client.ts';
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
