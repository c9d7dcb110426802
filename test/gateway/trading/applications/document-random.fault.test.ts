import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { array, asyncProperty, assert as check, constantFrom, record } from 'fast-check';
import { DocumentOutcome } from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { apply, fourTypes, overGrpc, overRest } from '../../../support/documents.ts';
import { fated } from '../../../support/fault/moments/fated.ts';
import { noiseJpeg } from '../../../support/images.ts';

/** How many sequences are run, and which: a failure says what brings it back. */
const runs = Number(process.env.FAULT_RUNS ?? 4);
const seed = Number(process.env.FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));
const path = process.env.FAULT_PATH;

/** The faults that a file can meet on its way, and whether the broker has the file then, as far as one file goes. */
const faults = {
  lost: { fault: WireFault.LOSE_ANSWER, isTaken: true },
  nonsense: { fault: WireFault.NONSENSE, isTaken: true },
  'reset after': { fault: WireFault.RESET_AFTER, isTaken: true },
  'reset before': { fault: WireFault.RESET_BEFORE, isTaken: false },
  hang: { fault: WireFault.HANG, isTaken: false },
} as const;
const begun = { kind: 'commit', label: 'update applications, insert documents, insert object_steps' } as const;
const call = { kind: 'call', label: 'Applications/SendDocument' } as const;
/** Where the gateway is killed. A kill after the outcome is recorded is a case of `moments.fault.test.ts`. */
const kills = {
  'kill before it is stored': { ...begun, fate: 'before' },
  'kill after it is stored': { ...call, fate: 'before' },
  'kill after it is sent': { ...call, fate: 'after' },
} as const;
type Kill = keyof typeof kills;
type Meets = keyof typeof faults | 'nothing' | 'refusal' | Kill;

/** The contract's rules for one document, from what was seen of it alone. */
class Model {
  delivered: string | undefined;
  unconfirmed: string | undefined;
  /** The file that the broker has. */
  atBroker: string | undefined;

  /** Returns the error of a file that is refused without being sent; undefined: the file is sent. */
  refusal(file: string): string | undefined {
    if (this.delivered !== undefined) return this.delivered === file ? 'delivered' : 'document_already_delivered';
    const waits = this.unconfirmed !== undefined && this.unconfirmed !== file;
    return waits ? 'earlier_document_unconfirmed' : undefined;
  }

  deliver(file: string): string {
    this.delivered = file;
    this.atBroker = file;
    return 'delivered';
  }

  lose(file: string, isTaken: boolean): string {
    this.unconfirmed = file;
    if (isTaken) this.atBroker = file;
    return 'document_unconfirmed';
  }

  refuse(file: string): string {
    // A file the broker has is answered as delivered, whatever it would make of a new one.
    if (this.atBroker === file) return this.deliver(file);
    this.unconfirmed = undefined;
    return 'document_rejected';
  }

  /** Undefined: no answer came. */
  kill(file: string, at: Kill): undefined {
    if (at !== 'kill before it is stored') this.lose(file, at === 'kill after it is sent');
  }
}

describe('documents, in whatever order files, answers, losses and crashes come', () => {
  let cluster: Cluster;
  let partner: Partner;
  let gateway: GatewayProcess;
  const files: Record<string, Buffer> = {};
  before(async () => {
    cluster = await Cluster.start({ MARINA_SUBMIT_TIMEOUT_MS: '500' });
    partner = await cluster.newPartner();
    gateway = await cluster.startGateway();
    for (const name of ['a', 'b']) files[name] = await noiseJpeg();
  });
  after(() => cluster.stop());

  const step = record({
    type: constantFrom(...fourTypes),
    // Mostly the same, so that sequences come to an end now and then.
    file: constantFrom('a', 'a', 'a', 'b'),
    protocol: constantFrom('REST', 'gRPC'),
    meets: constantFrom<Meets>(
      'nothing',
      'nothing',
      'nothing',
      'refusal',
      ...(Object.keys(kills) as Kill[]),
      ...(Object.keys(faults) as Meets[]),
    ),
  });

  it(`keep the contract's rules (FAULT_SEED=${seed})`, async () => {
    await check(
      asyncProperty(array(step, { minLength: 8, maxLength: 16 }), async (steps) => {
        const id = await apply(gateway.request, partner.key, { last_name: 'SIM-WAIT' });
        const models = new Map(fourTypes.map((type) => [type, new Model()]));
        const receipts = new Map<string, number>();
        for (const { type, file, protocol, meets } of steps) {
          const model = models.get(type) ?? new Model();
          const refusal = model.refusal(file);
          if (refusal !== undefined) {
            assert.equal(await send(id, type, file, protocol), refusal);
            continue;
          }
          const expected = await prepare(model, id, file, meets);
          assert.equal(await send(id, type, file, protocol), expected, `${type} ${file} that meets ${meets}`);
          if (meets !== 'kill before it is stored' && meets !== 'kill after it is stored') {
            receipts.set(`${type} ${file}`, (receipts.get(`${type} ${file}`) ?? 0) + 1);
          }
          if (expected === undefined) {
            await gateway.exited;
            gateway = await cluster.startGateway();
          }
        }
        await checkAgainst(id, models, receipts);
      }),
      { numRuns: runs, seed, ...(path && { path }), endOnFailure: true },
    );
  });

  /** Makes what a file is to meet meet it, and answers what it then comes to. */
  async function prepare(model: Model, id: string, file: string, meets: Meets): Promise<string | undefined> {
    if (meets === 'nothing') return model.deliver(file);
    if (meets === 'refusal') {
      const isTold = model.atBroker !== file;
      const refuse = { clientApplicationId: id, times: 1, outcome: DocumentOutcome.REFUSED };
      if (isTold) await cluster.controls.forceDocument(refuse, callTimeout);
      return model.refuse(file);
    }
    if (isKill(meets)) {
      await gateway.stop();
      gateway = await cluster.startGateway(fated(cluster.folder, kills[meets]));
      return model.kill(file, meets);
    }
    const { fault, isTaken } = faults[meets];
    await cluster.controls.injectFault({ call: Call.SEND_DOCUMENT, fault, times: 1 }, callTimeout);
    return model.lose(file, isTaken);
  }

  /** Sends a file; while what a killed process sent may still be on its way, again. */
  async function send(id: string, type: string, file: string, protocol: string): Promise<string | undefined> {
    const open = protocol === 'REST' ? overRest(gateway.restPort) : overGrpc(gateway.grpcPort);
    for (;;) {
      const { outcome } = await open({ key: partner.key, id, type, file: files[file] ?? Buffer.alloc(0) });
      if (outcome !== 'document_in_flight') return outcome;
      await delay(50);
    }
  }

  async function checkAgainst(
    id: string,
    models: ReadonlyMap<string, Model>,
    receipts: ReadonlyMap<string, number>,
  ): Promise<void> {
    const { applications } = await cluster.controls.listApplications({ clientApplicationId: id }, callTimeout);
    const received = (applications[0]?.documents ?? []).map(({ type, sha256, timesReceived }) => {
      const name = Object.keys(files).find((each) => digestOf(files[each]).equals(sha256));
      return [`${fourTypes[type - 1]} ${name}`, timesReceived] as const;
    });
    assert.deepEqual(
      new Map(received.sort()),
      new Map([...receipts].sort()),
      'what the broker received, and how often',
    );
    const list = await gateway.request('GET', `/v1/applications/${id}/documents`, { key: partner.key });
    const delivered = [...models].filter(([, model]) => model.delivered !== undefined).map(([type]) => type);
    assert.deepEqual(list.body.data.map(({ type }: { type: string }) => type).sort(), delivered.sort());
    const { body } = await gateway.request('GET', `/v1/applications/${id}`, { key: partner.key });
    assert.equal(body.state, delivered.length === fourTypes.length ? 'submitted' : 'documents_required');
  }
});

function isKill(meets: Meets): meets is Kill {
  return meets in kills;
}

function digestOf(file: Buffer | undefined): Buffer {
  return createHash('sha256')
    .update(file ?? Buffer.alloc(0))
    .digest();
}
