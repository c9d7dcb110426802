/**
 * `make verify-ledger`: proves the ledger of every wallet of the running sandbox, or of the gateway whose operators' port
 * and token `MARINA_ADMIN_ADDRESS` and `MARINA_OPERATOR_TOKEN` name. Ends with 1 when anything is wrong.
 */
import { Metadata } from '@grpc/grpc-js';
import { type LedgerFault, LedgerFaultKind, type WalletSums, Wallets } from '../gen/marina/admin/v1/wallets_pb.ts';
import { createGrpcClient, type GrpcClient } from '../kit/grpc-client.ts';
import { explain } from './advice.ts';
import { runningSandbox } from './sandbox-file.ts';
import { dataFolder } from './settings.ts';

/** For one call: a walk of 50,000 entries takes a second or two. */
const timeoutMs = 60_000;

verifyAll().then(
  (proven) => process.exit(proven ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`The ledgers could not be verified: ${explain(error)}\n`);
    process.exit(1);
  },
);

async function verifyAll(): Promise<boolean> {
  const { address, token } = operatorsPort();
  const client = createGrpcClient(Wallets, address);
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  const options = { timeoutMs, metadata };
  let proven = true;
  try {
    for await (const wallet of allWallets(client, options)) {
      const faults = await verify(client, options, wallet);
      proven &&= faults.length === 0;
      const { partnerId, lastSequence, availableKobo, reservedKobo, postedKobo } = wallet;
      say(`${partnerId}: ${lastSequence} entries, ${faults.length === 0 ? 'proven' : 'WRONG'}`);
      say(`  ${availableKobo} kobo available, ${reservedKobo} reserved, ${postedKobo} posted`);
      for (const { kind, sequence, id, detail } of faults) {
        say(`  ${LedgerFaultKind[kind].toLowerCase()}: entry ${sequence} ${id}: ${detail}`);
      }
    }
  } finally {
    client.close();
  }
  return proven;
}

type Options = { timeoutMs: number; metadata: Metadata };

async function* allWallets(client: GrpcClient<typeof Wallets>, options: Options): AsyncGenerator<WalletSums> {
  for (let afterPartnerId = '', more = true; more; ) {
    const page = await client.listWallets({ afterPartnerId }, options);
    yield* page.wallets;
    afterPartnerId = page.wallets.at(-1)?.partnerId ?? '';
    more = page.hasMore;
  }
}

async function verify(
  client: GrpcClient<typeof Wallets>,
  options: Options,
  { partnerId }: WalletSums,
): Promise<LedgerFault[]> {
  const faults: LedgerFault[] = [];
  for (let afterSequence = 0n; ; ) {
    const walk = await client.verifyLedger({ partnerId, afterSequence }, options);
    faults.push(...walk.faults);
    if (walk.complete) return faults;
    if (walk.lastSequence <= afterSequence) throw new Error(`the check of ${partnerId} ends at entry ${afterSequence}`);
    afterSequence = walk.lastSequence;
  }
}

function operatorsPort(): { address: string; token: string } {
  const { MARINA_ADMIN_ADDRESS: address, MARINA_OPERATOR_TOKEN: token } = process.env;
  if (address !== undefined && token !== undefined) return { address, token };
  const sandbox = runningSandbox(dataFolder(process.env));
  return { address: sandbox.admin_address, token: sandbox.operator_token };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
