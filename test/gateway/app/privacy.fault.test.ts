import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { CreateApplicationRequestSchema } from '../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { type Server, startMariaDb, startNats } from '../../../src/sandbox/servers.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { goodFields, overGrpc, overRest } from '../../support/documents.ts';
import { fated } from '../../support/fault/moments/fated.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { chunk, handmadePng } from '../../support/images.ts';
import { allParts } from '../../support/world.ts';

/** Fields whose values are lists of the broker or magic, and so are no secret of one customer's. */
const chosen = new Set(['state', 'state_of_origin', 'lga_of_origin', 'date_of_birth']);
/** The one date that no customer of another test was born on. */
const birthday = '1931-07-23';

/** Values that are nowhere else, by field, and what of documents must be found nowhere. */
function canaries() {
  const word = (name: string) => `canary-${name.replaceAll('_', '-')}-${randomBytes(8).toString('hex')}`;
  const fields = CreateApplicationRequestSchema.fields.map(({ name }) => [name, word(name)] as const);
  const values = Object.fromEntries(fields.filter(([name]) => !chosen.has(name)));
  return {
    fields: { ...goodFields, ...values, date_of_birth: birthday },
    secrets: [...Object.values(values), birthday],
  };
}

/** A picture with a canary in its text, and pixels that are nowhere else. */
function canaryPng(canary: string): Buffer {
  const rows = randomBytes(40 * 121);
  for (let row = 0; row < 40; row += 1) rows[row * 121] = 0;
  return handmadePng({ width: 40, height: 40, rows, before: [chunk('tEXt', Buffer.from(`Comment\0${canary}`))] });
}

/**
 * The traces by which a file could be found: its canary as it is, and in the forms in which bytes are written into
 * texts.
 */
function traces(file: Buffer, canary: string): Buffer[] {
  const middle = file.subarray(file.length / 2, file.length / 2 + 24);
  const inBase64 = [0, 1, 2].map((shift) => Buffer.from(canary).subarray(shift).toString('base64').slice(0, -4));
  return [
    Buffer.from(canary),
    Buffer.from(Buffer.from(canary).toString('hex')),
    ...inBase64.map((text) => Buffer.from(text)),
    middle,
    Buffer.from(middle.toString('hex')),
  ];
}

function* filesIn(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesIn(path);
    else if (entry.isFile()) yield path;
  }
}

describe('what applications and documents say of a customer', () => {
  const folder = temporaryFolder();
  const temporary = join(folder, 'tmp');
  const secrets: Buffer[] = [];
  /** All that was answered. */
  const answered: string[] = [];
  let cluster: Cluster;
  let partner: Partner;
  let mariadb: Server;
  let nats: Server;
  before(async () => {
    sharedKeeper().removeAtEnd(folder);
    mkdirSync(temporary);
    // Servers of its own, which write all to files as they would in earnest; the simulated broker's are others.
    [mariadb, nats] = await Promise.all([
      startMariaDb({ dataDir: join(folder, 'mariadb') }),
      startNats({ dataDir: join(folder, 'nats') }),
    ]);
    cluster = await Cluster.start({ MARINA_LOG_LEVEL: 'trace' }, { databaseServerUrl: mariadb.url, natsUrl: nats.url });
    partner = await cluster.newPartner();
  });
  after(async () => {
    // Its database is stopped, for its files to be read.
    await cluster.stop(allParts);
    await Promise.all([mariadb.stop(), nats.stop()]);
  });

  /** `fate`: it is killed right before or after its first call of this name to the broker. */
  function start(label?: string, fate: 'before' | 'after' = 'before'): Promise<GatewayProcess> {
    const killed = label === undefined ? {} : fated(cluster.folder, { kind: 'call', label, fate });
    return cluster.startGateway({ TMPDIR: temporary, ...killed });
  }

  async function apply(gateway: GatewayProcess, changed: Record<string, unknown> = {}) {
    const { fields, secrets: own } = canaries();
    secrets.push(...own.map((each) => Buffer.from(each)));
    const body = { ...fields, ...changed };
    const answer = await gateway.request('POST', '/v1/applications', {
      key: partner.key,
      idempotencyKey: randomUUID(),
      body,
    });
    answered.push(JSON.stringify(answer.body ?? ''));
    return answer;
  }

  /** Sends a file that is found nowhere else, through each protocol. */
  async function send(gateway: GatewayProcess, id: string, type: string, change = (file: Buffer) => file) {
    const outcomes: (string | undefined)[] = [];
    for (const protocol of [overRest(gateway.restPort), overGrpc(gateway.grpcPort)]) {
      const canary = `canary-document-${randomBytes(12).toString('hex')}`;
      const file = change(canaryPng(canary));
      secrets.push(...traces(file, canary));
      const sent = await protocol({ key: partner.key, id, type, file });
      answered.push(JSON.stringify(sent));
      outcomes.push(sent.outcome);
    }
    return outcomes;
  }

  it('is nowhere to be found, whatever became of them', async () => {
    const gateway = await start();
    // Taken, rejected, uncertain, and refused for the fields themselves.
    const ids: string[] = [];
    for (const first_name of ['', 'SIM-LOSE-DOCUMENTS', 'SIM-HANG-DOCUMENTS', 'SIM-REFUSE-PHOTO']) {
      const answer = await apply(gateway, { last_name: 'SIM-WAIT', ...(first_name && { first_name }) });
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      ids.push(answer.body.id);
    }
    for (const last_name of ['SIM-REJECT-INVALID', 'SIM-ALREADY', 'SIM-HANG', 'SIM-LOST', 'SIM-RESETAFTER']) {
      await apply(gateway, { last_name });
    }
    for (const wrong of [
      { date_of_birth: 'canary-no-date' },
      { email: `canary-${'x'.repeat(300)}` },
      { canary_unknown: 'canary' },
      { bvn: 22222222222 },
      { phone: '' },
      { lga_of_origin: 'NOWHERE' },
    ]) {
      const answer = await apply(gateway, wrong);
      assert.notEqual(answer.status, 201);
    }

    const [good = '', losing = '', hanging = '', refusing = ''] = ids;
    assert.deepEqual(await send(gateway, good, 'photo'), ['delivered', 'document_already_delivered']);
    assert.deepEqual(await send(gateway, losing, 'photo'), ['document_unconfirmed', 'earlier_document_unconfirmed']);
    assert.deepEqual(await send(gateway, hanging, 'photo'), ['document_unconfirmed', 'earlier_document_unconfirmed']);
    assert.deepEqual(await send(gateway, refusing, 'photo'), ['document_rejected', 'document_rejected']);
    const damaged = (file: Buffer) => file.subarray(0, -20);
    assert.deepEqual(await send(gateway, good, 'signature', damaged), ['invalid_document', 'invalid_document']);
    const late = (file: Buffer) => Buffer.concat([file, randomBytes(1_000_000)]);
    assert.equal((await send(gateway, good, 'signature', late))[0], 'document_too_large');
    assert.deepEqual(await send(gateway, good, 'passport'), ['invalid_request', 'invalid_request']);
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.opsPort}/metrics`)).text();
    const events = await gateway.request('GET', '/v1/events?limit=100', { key: partner.key });
    answered.push(metrics, JSON.stringify(events.body));

    // The memory of a process must not be on a disk after it is killed either.
    for (const fate of ['before', 'after'] as const) {
      const dying = await start('Applications/SubmitApplication', fate);
      assert.equal((await apply(dying)).status, undefined);
      await dying.exited;
    }
    for (const fate of ['before', 'after'] as const) {
      const dying = await start('Applications/SendDocument', fate);
      assert.deepEqual(await send(dying, good, fate === 'after' ? 'signature' : 'utility_bill'), [
        undefined,
        undefined,
      ]);
      await dying.exited;
    }
    await delay(500); // The servers write what they hold.
    await gateway.stop();
    await Promise.all([mariadb.stop(), nats.stop()]);

    let bytes = 0;
    const found: string[] = [];
    for (const path of filesIn(folder)) find(path, readFileSync(path));
    // The simulator's own log is its own affair.
    for (const path of filesIn(cluster.folder)) if (!path.endsWith('simulator.log')) find(path, readFileSync(path));
    find('an answer', Buffer.from(answered.join('\n')));
    assert.deepEqual(found, []);
    // The same search finds a value that is kept.
    const kept = [...filesIn(join(folder, 'mariadb'))].filter((path) => readFileSync(path).includes(good));
    assert.ok(kept.length > 0, "the application's id is in the database's files");
    assert.ok(bytes > 1_000_000, `${bytes} bytes were looked through`);
    assert.ok(secrets.length > 300, `${secrets.length} traces were looked for`);

    function find(path: string, content: Buffer): void {
      bytes += content.length;
      for (const secret of secrets) if (content.includes(secret)) found.push(`${secret.toString('latin1')} in ${path}`);
    }
  });
});
