import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { type Metadata, Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import {
  LedgerFaultKind,
  type ListWalletsRequest,
  ListWalletsResponseSchema,
  type VerifyLedgerRequest,
  VerifyLedgerResponseSchema,
  Wallets,
} from '../../src/gen/marina/admin/v1/wallets_pb.ts';
import { serviceDefinition } from '../../src/kit/grpc-service.ts';

const script = join(import.meta.dirname, '../../src/sandbox/verify-ledger.ts');

/** Runs `make verify-ledger` against the operators' port. */
function verify(port: number): Promise<{ readonly code: number; readonly output: string }> {
  const env = { ...process.env, MARINA_ADMIN_ADDRESS: `127.0.0.1:${port}`, MARINA_OPERATOR_TOKEN: 'the token' };
  return new Promise((resolve) => {
    execFile(process.execPath, ['--import', 'tsx', script], { env, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
}

describe('the proof of all ledgers', () => {
  /** The wallets, with the entries of their ledgers: true is a wrong one. The walk over a ledger without any comes to no end. */
  let wallets: Record<string, boolean[]> = {};
  const tokens = new Set<string>();
  const server = new Server();
  let port = 0;
  const answer =
    <Request, Answer>(reply: (request: Request) => Answer) =>
    ({ request, metadata }: ServerUnaryCall<Request, Answer> & { metadata: Metadata }, send: sendUnaryData<Answer>) => {
      tokens.add(String(metadata.get('authorization')[0]));
      send(null, reply(request));
    };
  before(async () => {
    server.addService(serviceDefinition(Wallets), {
      // One wallet a page.
      listWallets: answer(({ afterPartnerId }: ListWalletsRequest) => {
        const [partnerId, next] = Object.keys(wallets).filter((id) => id > afterPartnerId);
        const page = partnerId === undefined ? [] : [{ partnerId, lastSequence: 3n, availableKobo: 5n }];
        return create(ListWalletsResponseSchema, { wallets: page, hasMore: next !== undefined });
      }),
      // One entry a walk.
      verifyLedger: answer(({ partnerId, afterSequence }: VerifyLedgerRequest) => {
        const entries = wallets[partnerId] ?? [];
        if (entries.length === 0) return create(VerifyLedgerResponseSchema, { lastSequence: afterSequence });
        const sequence = afterSequence + 1n;
        const kind = LedgerFaultKind.CHANGED;
        const faults = entries[Number(afterSequence)] === true ? [{ kind, sequence, id: 'x', detail: 'changed' }] : [];
        const walked = { entries: 1n, lastSequence: sequence, complete: Number(sequence) >= entries.length };
        return create(VerifyLedgerResponseSchema, { ...walked, faults });
      }),
    });
    port = await new Promise((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
  });
  after(() => server.forceShutdown());

  it('ledgers are proven if each wallet is, to the end of its ledger', async () => {
    wallets = { par_a: [false, false], par_b: [false] };
    const { code, output } = await verify(port);
    assert.equal(code, 0, output);
    assert.deepEqual(output.match(/^par_\w: 3 entries, proven$/gm)?.length, 2, output);
    assert.deepEqual([...tokens], ['Bearer the token']);
  });

  it('ledgers are not proven if the end of one is wrong, whatever the others are, and the wrong one is named', async () => {
    wallets = { par_a: [false, false, true], par_b: [false] };
    const { code, output } = await verify(port);
    assert.equal(code, 1, output);
    assert.match(output, /^par_a: 3 entries, WRONG$/m);
    assert.match(output, /changed: entry 3 x: changed/);
    assert.match(output, /^par_b: 3 entries, proven$/m);
  });

  it('ledgers are not proven if the walk over one comes to no end', async () => {
    wallets = { par_a: [false], par_b: [] };
    const { code, output } = await verify(port);
    assert.equal(code, 1, output);
    assert.doesNotMatch(output, /^par_b: .* proven$/m);
  });
});
