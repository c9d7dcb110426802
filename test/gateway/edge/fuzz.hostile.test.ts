import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import fc from 'fast-check';
import type { OperationRules } from '../../../src/gateway/edge/operations.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { gatewayOperations } from '../../../src/site/gateway-contract.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { apply } from '../../support/documents.ts';
import { GrpcWire } from '../../support/e2e/grpc-wire.ts';
import { sendRaw } from '../../support/e2e/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { claimMachine } from '../../support/hostile/alone.ts';
import { type FuzzCase, fuzzCases, type World } from '../../support/hostile/fuzz/cases.ts';
import { connectRequest, headersOf, protobufBody, restRequest } from '../../support/hostile/fuzz/forms.ts';
import { judgeConnect, judgeGrpc, judgeRest, type Stored } from '../../support/hostile/fuzz/judge.ts';
import { noisePng } from '../../support/images.ts';
import { createKey } from '../../support/keys.ts';

/** Repeat a failure with the seed it prints; make any number of cases for each operation. */
const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
const casesEach = Number(process.env.FUZZ_CASES ?? 500);
/** All operations together must be done in this time: several times what they need, so that no case is left out unseen. */
const maxMs = process.env.FUZZ_CASES === undefined ? 300_000 : 24 * 3_600_000;
/** How many operations are tried at once. */
const atOnce = 16;

/** Each request has a connection of its own, and one address may not open so many. */
function addressAt(at: number): string {
  return `127.0.${100 + (at % 100)}.1`;
}

const operations = gatewayOperations.filter(({ method }) => method.parent.name !== 'Sandbox');
/** They make the exchange misbehave, so they come when all else has been looked at. */
const steering = gatewayOperations.filter(({ method }) => method.parent.name === 'Sandbox');

describe(`requests of any kind (FUZZ_SEED=${seed})`, () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let partner: Partner;
  let key: string;
  let grpc: GrpcWire;
  let world: World;
  /** The ids of the objects that answers reported as stored. */
  const stored = new Set<string>();
  let startedAt = 0;
  let sent = 0;
  let release: () => Promise<void>;

  before(async () => {
    cluster = await Cluster.start({ MARINA_READ_TIMEOUT_MS: '5000', MARINA_SUBMIT_TIMEOUT_MS: '10000' });
    gateway = await cluster.startGateway();
    partner = await cluster.newPartner();
    await cluster.fund(partner, 10n ** 9n);
    const scopes = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.KEYS, Scope.WITHDRAW];
    key = (await createKey(cluster.database, { partnerId: partner.id, scopes })).key;
    grpc = new GrpcWire(gateway.grpcPort);
    world = await settle();
    release = await claimMachine();
    startedAt = performance.now();
  });
  after(async () => {
    await release?.();
    grpc?.close();
    await cluster?.stop();
  });

  /** Something of everything, that requests can be about. */
  async function settle(): Promise<World> {
    const made = async (making: Promise<{ status: number | undefined; body: { id: string } }>) => {
      const { body } = await making;
      stored.add(body.id);
      return body.id;
    };
    const applications = [await apply(gateway.request, partner.key)];
    for (const id of applications) stored.add(id);
    const orders = [
      await made(gateway.place(partner, { symbol: 'SIM-REST' })),
      await made(gateway.place(partner, { symbol: 'SIM-PARTS' })),
    ];
    const allocations = [await made(gateway.allocate(partner, {}))];
    const withdrawals = [await made(gateway.withdraw(partner, { destination: 'bank_account' }))];
    return { accounts: [partner.account], orders, applications, allocations, withdrawals, picture: await noisePng() };
  }

  async function send(operation: OperationRules, fuzz: FuzzCase): Promise<Stored> {
    const { protocol } = fuzz;
    if (protocol === 'gRPC') return judgeGrpc(operation, fuzz, await callGrpc(operation, fuzz));
    const request = protocol === 'REST' ? restRequest(operation, fuzz, key) : connectRequest(operation, fuzz, key);
    const answer = await sendRaw(gateway.restPort, request, addressAt(sent++));
    return protocol === 'REST' ? judgeRest(operation, fuzz, request, answer) : judgeConnect(operation, fuzz, answer);
  }

  function callGrpc(operation: OperationRules, fuzz: FuzzCase) {
    const metadata = new Metadata();
    for (const [name, value] of headersOf(operation, fuzz, key)) metadata.add(name.toLowerCase(), value);
    const { parent, name } = operation.method;
    const path = fuzz.twist === 'odd path' ? `/${parent.typeName}/${name}x` : `/${parent.typeName}/${name}`;
    return grpc.call(path, protobufBody(operation, fuzz), metadata);
  }

  function fuzzed(operation: OperationRules): void {
    it(`${operation.name} answers each request as the contract says`, async () => {
      const property = fc.asyncProperty(fuzzCases(operation, world), async (fuzz) => {
        const id = await send(operation, fuzz);
        if (id !== undefined) stored.add(id);
      });
      const leftMs = Math.max(1_000, startedAt + maxMs - performance.now());
      await fc.assert(property, {
        seed,
        numRuns: casesEach,
        interruptAfterTimeLimit: leftMs,
        markInterruptAsFailure: true,
      });
    });
  }

  describe('of all operations', { concurrency: atOnce }, () => {
    for (const operation of operations.filter(({ method }) => method.methodKind === 'unary')) fuzzed(operation);
  });

  it('nothing is stored that no answer told of, and nothing was sent that is not stored', async () => {
    const database = cluster.database;
    for (const kind of ['ord_', 'app_', 'alc_', 'wdr_']) {
      assert.ok([...stored].filter((id) => id.startsWith(kind)).length > 5, `too few requests for ${kind} were good`);
    }
    for (const table of ['orders', 'applications', 'allocations', 'withdrawals']) {
      const rows = await database.read(statement(`SELECT id FROM ${table} WHERE partner_id = ?`, partner.id));
      const untold = rows.map(({ id }) => String(id)).filter((id) => !stored.has(id));
      assert.deepEqual(untold, [], `${table} were stored for requests that were refused`);
    }
    await checkEverything(cluster, gateway, [partner], 60_000);
  });

  describe('of all that steers the sandbox', { concurrency: atOnce }, () => {
    before(() => {
      startedAt = performance.now();
    });
    for (const operation of steering) fuzzed(operation);
  });

  it('the process lives, and is ready', async () => {
    assert.doesNotThrow(() => process.kill(gateway.pid, 0));
    const unusual = gateway.logged().filter(({ level }) => level === 'fatal' || level === 'error');
    assert.deepEqual(unusual, []);
    await eventually(async () => {
      const ready = await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`);
      assert.equal(ready.status, 200, await ready.text());
    });
  });
});
