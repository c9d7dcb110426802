import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { Diagnostics } from '../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { CreateKeyResponseSchema, Keys } from '../../src/gen/marina/admin/v1/keys_pb.ts';
import {
  ListReconciliationBreaksResponseSchema,
  ReconcileDayResponseSchema,
} from '../../src/gen/marina/admin/v1/reconciliation_pb.ts';
import { Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import {
  ClearDirectivesResponseSchema,
  Controls,
  GetDayResponseSchema,
  LieInStatementsResponseSchema,
  SetClockErrorResponseSchema,
  StatementLie,
} from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { serviceDefinition } from '../../src/kit/grpc-service.ts';
import { drills } from '../../src/sandbox/drills.ts';
import { type Sandbox, writeSandbox } from '../../src/sandbox/sandbox-file.ts';
import { alertRules } from '../support/alert-rules.ts';
import { temporaryFolder } from '../support/folders.ts';
import { answering, type StandInCall, startStandIn } from '../support/grpc-stand-in.ts';

const operations = join(import.meta.dirname, '../../docs/operations');

function drillOf(name: string) {
  const drill = drills.find((each) => each.name === name);
  assert.ok(drill, name);
  return drill;
}

describe('the drills of a sandbox', () => {
  /** The calls of gRPC, and the requests of REST. */
  const calls: StandInCall[] = [];
  const requests: { method: string; url: string; key: string; body: Record<string, unknown> }[] = [];
  let orders: { status: number; states: string[] } = { status: 201, states: [] };
  let hasBreaks = false;
  let restUrl = '';
  let grpc: Awaited<ReturnType<typeof startStandIn>>;
  const rest = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { method = '', url = '', headers } = request;
    const body = text === '' ? {} : JSON.parse(text);
    requests.push({ method, url, key: headers.authorization ?? '', body });
    const state = method === 'GET' ? (orders.states.shift() ?? 'filled') : 'pending';
    response.writeHead(method === 'GET' ? 200 : orders.status).end(JSON.stringify({ id: 'ord_1', state }));
  });
  before(async () => {
    rest.listen(0, '127.0.0.1');
    await once(rest, 'listening');
    restUrl = `http://127.0.0.1:${(rest.address() as AddressInfo).port}`;
    grpc = await startStandIn([
      [
        serviceDefinition(Controls),
        {
          setClockError: answering('clock', calls, () => create(SetClockErrorResponseSchema, {})),
          getDay: answering('day', calls, () => create(GetDayResponseSchema, { today: '2026-11-30' })),
          lieInStatements: answering('lie', calls, () => create(LieInStatementsResponseSchema, {})),
          clearDirectives: answering('clear', calls, () => create(ClearDirectivesResponseSchema, {})),
        },
      ],
      [
        serviceDefinition(Diagnostics),
        {
          reconcileDay: answering('reconcile', calls, () => create(ReconcileDayResponseSchema, {})),
          listReconciliationBreaks: answering('breaks', calls, () =>
            create(ListReconciliationBreaksResponseSchema, { breaks: hasBreaks ? [{}] : [] }),
          ),
        },
      ],
      [
        serviceDefinition(Keys),
        {
          createKey: answering('key', calls, () =>
            create(CreateKeyResponseSchema, { key: { id: 'key_1' }, secret: 'marina_test_leaked' }),
          ),
        },
      ],
    ]);
  });
  after(() => {
    grpc.stop();
    rest.closeAllConnections();
    rest.close();
  });
  beforeEach(() => {
    calls.length = 0;
    requests.length = 0;
    orders = { status: 201, states: [] };
    hasBreaks = false;
  });

  function sandboxIn(dataDir: string, pids: Sandbox['pids']) {
    const sandbox = {
      rest_url: restUrl,
      admin_address: grpc.address,
      simulator_address: grpc.address,
      operator_token: 'the token',
      database: 'MariaDB 10.11',
      partners: ['par_a', 'par_b'].map((id) => ({ id, key: `key of ${id}`, account: `account of ${id}` })),
      pids,
    } as unknown as Sandbox;
    writeSandbox(dataDir, sandbox);
    return { sandbox, dataDir };
  }
  const placed = () => requests.filter(({ method }) => method === 'POST');
  const names = () => calls.map(({ name }) => name);

  it('every drill has a name of its own, an alert that there is, and a page that there is', () => {
    const alerts = new Set(alertRules.map(({ name }) => name));
    assert.ok(alerts.size > 10);
    assert.equal(new Set(drills.map(({ name }) => name)).size, drills.length);
    for (const { name, heard, page } of drills) {
      for (const [alert] of heard.matchAll(/\bMarina\w+/g)) assert.ok(alerts.has(alert), `${name}: ${alert}`);
      const [file = '', anchor] = page.split('#');
      const text = readFileSync(join(operations, file), 'utf8').toLowerCase();
      if (anchor !== undefined) assert.match(text, new RegExp(`^#+ .*${anchor}`, 'm'), `${name}: ${page}`);
    }
  });

  for (const [name, part] of [
    ['database', 'mariadb'],
    ['nats', 'nats'],
    ['broker', 'simulator'],
    ['gateway', 'gateway'],
    ['webhooks', 'receiver'],
  ] as const) {
    it(`the drill ${name} kills the ${part} that runs now, and keeps it down until the drill ends`, async () => {
      const dataDir = temporaryFolder();
      const [running, other] = [0, 1].map(() => spawn('sleep', ['60']));
      assert.ok(running?.pid !== undefined && other?.pid !== undefined);
      const ended = once(running, 'exit');
      const others = Object.fromEntries(
        ['mariadb', 'nats', 'simulator', 'gateway', 'receiver'].map((each) => [each, other.pid]),
      );
      const { sandbox } = sandboxIn(dataDir, { ...others, [part]: running.pid });
      // It was started again since the drill read the file.
      const where = { dataDir, sandbox: { ...sandbox, pids: { ...others, [part]: other.pid } } };
      const drill = drillOf(name);
      const told = await drill.begin(where);
      assert.deepEqual(await ended, [null, 'SIGKILL']);
      assert.match(told, /kept from coming back/);
      const waiting = placed().map(({ key, body }) => `${key}: ${body.symbol}`);
      assert.deepEqual(waiting, name === 'webhooks' ? ['Bearer key of par_a: SIM-FILL'] : []);
      const down = join(dataDir, 'down', part);
      assert.ok(existsSync(down));
      await drill.end(where);
      assert.ok(!existsSync(down));
      await drill.end(where);
      assert.equal(other.exitCode ?? other.signalCode, null, 'the other parts go on');
      other.kill();
      await once(other, 'exit');
    });
  }

  it('a part that the sandbox does not run is not kept down', async () => {
    const dataDir = temporaryFolder();
    const where = sandboxIn(dataDir, { gateway: process.pid });
    await assert.rejects(drillOf('nats').begin(where), /^Advice: The sandbox runs no nats of its own/);
    assert.ok(!existsSync(join(dataDir, 'down', 'nats')));
  });

  it('a disk that is full is not played on a database of yours', async () => {
    const where = sandboxIn(temporaryFolder(), { gateway: process.pid });
    await assert.rejects(drillOf('disk-full').begin(where), /^Advice: The sandbox uses a database of yours/);
    await drillOf('disk-full').end(where);
  });

  it('the broker’s clock is two minutes behind until the drill ends', async () => {
    const where = sandboxIn(temporaryFolder(), {});
    await drillOf('wrong-clock').begin(where);
    await drillOf('wrong-clock').end(where);
    assert.deepEqual(
      calls.map(({ name, request }) => [name, request.errorMs]),
      [
        ['clock', -120_000n],
        ['clock', 0n],
      ],
    );
  });

  it('the broker’s statement of today is wrong about an order that traded', async () => {
    const where = sandboxIn(temporaryFolder(), {});
    orders.states = ['pending', 'filled'];
    const told = await drillOf('broker-statement').begin(where);
    assert.match(told, /order ord_1 was filled otherwise/);
    assert.deepEqual(
      requests.map(({ method, url, key }) => `${method} ${url} ${key}`),
      [
        'POST /v1/orders Bearer key of par_a',
        'GET /v1/orders/ord_1 Bearer key of par_a',
        'GET /v1/orders/ord_1 Bearer key of par_a',
      ],
    );
    assert.deepEqual(names(), ['day', 'lie', 'lie', 'reconcile']);
    const lies = calls
      .filter(({ name }) => name === 'lie')
      .map(({ request: { lie, day, clientId } }) => ({ lie, day, clientId }));
    assert.deepEqual(lies, [
      { lie: StatementLie.COMPLETE, day: '2026-11-30', clientId: '' },
      { lie: StatementLie.ORDER_FILLED, day: '2026-11-30', clientId: 'ord_1' },
    ]);
    const compared = calls.at(-1);
    assert.deepEqual([compared?.request.day, compared?.token], ['2026-11-30', 'Bearer the token']);
  });

  it('the broker’s statement is whole again after the drill, and today is compared again if it left breaks', async () => {
    const where = sandboxIn(temporaryFolder(), {});
    await drillOf('broker-statement').end(where);
    assert.deepEqual(names(), ['clear', 'breaks']);
    assert.equal(calls[1]?.request.openOnly, true);
    calls.length = 0;
    hasBreaks = true;
    await drillOf('broker-statement').end(where);
    assert.deepEqual(names(), ['clear', 'breaks', 'day', 'lie', 'reconcile', 'clear']);
    assert.equal(calls[3]?.request.lie, StatementLie.COMPLETE);
  });

  it('a leaked key can read, trade and make keys of its partner, and places an order', async () => {
    const where = sandboxIn(temporaryFolder(), {});
    const told = await drillOf('leaked-key').begin(where);
    assert.equal(told, 'leaked=marina_test_leaked   # key key_1');
    const [made] = calls;
    assert.deepEqual(
      [made?.request.partnerId, made?.request.scopes, made?.token],
      ['par_a', [Scope.READ, Scope.TRADE, Scope.KEYS], 'Bearer the token'],
    );
    const [order] = placed();
    assert.deepEqual(
      [order?.key, order?.body.account, order?.body.symbol],
      ['Bearer marina_test_leaked', 'account of par_a', 'SIM-REST'],
    );
  });

  it('a complaint is about an order that the exchange rejects, with the reference that the operator is given', async () => {
    const where = sandboxIn(temporaryFolder(), {});
    orders.status = 422;
    const told = await drillOf('complaint').begin(where);
    const [order] = placed();
    assert.equal(told, `reference='${order?.body.client_reference}'`);
    assert.deepEqual([order?.key, order?.body.symbol], ['Bearer key of par_a', 'SIM-KILLED']);
    orders.status = 503;
    await assert.rejects(drillOf('complaint').begin(where), /an order was answered with 503/);
  });
});
