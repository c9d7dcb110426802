import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { Side } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../../../src/kit/clock.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { patient } from '../../../support/patience.ts';

const recordsTimeoutMs = 1_500;
const silent = createLogger({ name: 'marina', level: 'silent' });

const reads: readonly (readonly [Call, (account: string) => string])[] = [
  [Call.GET_BALANCE, (account) => `/v1/accounts/${account}/balance`],
  [Call.LIST_POSITIONS, (account) => `/v1/accounts/${account}/positions`],
  [Call.LIST_TRADES, (account) => `/v1/accounts/${account}/trades`],
  [Call.LIST_CONTRACT_NOTES, (account) => `/v1/accounts/${account}/contract-notes`],
  [Call.GET_ACCOUNT_STATUS, (account) => `/v1/accounts/${account}/status`],
  [Call.LIST_TRANSACTIONS, (account) => `/v1/accounts/${account}/transactions`],
  [Call.LIST_STATES, () => '/v1/reference/states'],
  [Call.LIST_LGAS, () => '/v1/reference/states/LAGOS/lgas'],
  [Call.GET_MARKET, () => '/v1/market'],
  [Call.LIST_MARKET_DAYS, () => '/v1/market/calendar'],
  [Call.LIST_INSTRUMENTS, () => '/v1/instruments'],
];

describe('a read of the broker', () => {
  let gateway: TestGateway;
  let others: readonly App[] = [];
  before(async () => {
    gateway = await startGateway({ MARINA_RECORDS_TIMEOUT_MS: String(recordsTimeoutMs) });
    others = await Promise.all([1, 2].map(() => startApp(readConfig({ ...gateway.variables }), silent)));
  });
  after(async () => {
    await Promise.all(others.map((app) => app.stop()));
    await gateway.stop();
  });

  const get = ({ key }: TestPartner, path: string) => gateway.rest('GET', path, { key });
  const getFrom = (port: number, { key }: TestPartner, path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } });
  const inject = (call: Call, fault: WireFault, times = 1, delayMs = 0) =>
    gateway.controls.injectFault({ call, fault, times, delayMs }, callTimeout);

  for (const [call, pathOf] of reads) {
    it(`${Call[call]} that hangs, is lost, refused, cut off or makes no sense is answered so, and the next one works`, async () => {
      const partner = await gateway.newPartner();
      const path = pathOf(partner.account);
      for (const [fault, status, code] of [
        [WireFault.HANG, 503, 'exchange_unavailable'],
        [WireFault.LOSE_ANSWER, 503, 'exchange_unavailable'],
        [WireFault.UNAVAILABLE_BEFORE, 503, 'exchange_unavailable'],
        [WireFault.UNAVAILABLE_AFTER, 503, 'exchange_unavailable'],
        [WireFault.RESET_AFTER, 503, 'exchange_unavailable'],
        [WireFault.NONSENSE, 502, 'exchange_error'],
      ] as const) {
        await inject(call, fault);
        const began = performance.now();
        const answer = await get(partner, path);
        assert.deepEqual([WireFault[fault], answer.status, answer.body.error?.code], [WireFault[fault], status, code]);
        assert.ok(performance.now() - began < patient(recordsTimeoutMs + 2_000));
        assert.doesNotMatch(answer.text, /injected|simulator|grpc|NOBODYASKED/i, 'our own sentences only');
        if (status === 503) assert.equal(answer.headers.get('retry-after'), '5');
      }
      await inject(call, WireFault.LATE_ANSWER, 1, 200);
      const late = await get(partner, path);
      assert.equal(late.status, 200, late.text);
    });
  }

  it('is one of two of the partner and of four in all, whichever replicas are asked', async () => {
    const partners = await Promise.all([1, 2, 3].map(() => gateway.newPartner()));
    const ports = [gateway.app.restPort, ...others.map(({ restPort }) => restPort)];
    const readAll = () =>
      Promise.all(
        partners.flatMap((partner) =>
          ports.flatMap((port) => [1, 2].map(() => getFrom(port, partner, `/v1/accounts/${partner.account}/balance`))),
        ),
      );
    await gateway.controls.getReads({}, callTimeout);
    await inject(Call.GET_BALANCE, WireFault.LATE_ANSWER, 54, 40);
    const statuses: number[] = [];
    for (let round = 0; round < 3; round += 1) statuses.push(...(await readAll()).map(({ status }) => status));
    const { most, mostOfAccount } = await gateway.controls.getReads({}, callTimeout);
    await gateway.controls.clearDirectives({}, callTimeout);
    assert.ok(most <= 4, `${most} in all`);
    assert.ok(mostOfAccount <= 2, `${mostOfAccount} of a partner`);
    assert.ok(most >= 2, 'they do run at the same time');
    assert.deepEqual(
      statuses.filter((status) => status !== 200 && status !== 503),
      [],
    );
    assert.ok(statuses.filter((status) => status === 200).length > statuses.length / 2);
  });

  it('is answered in its turn when a partner asks for 40 balances at once', async () => {
    const partner = await gateway.newPartner();
    const asked = Array.from({ length: 40 }, () => get(partner, `/v1/accounts/${partner.account}/balance`));
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    assert.deepEqual(statuses, new Array(40).fill(200));
  });

  it('a read of a slow broker is answered if its turn comes in time, and one of another partner comes between', async () => {
    const [greedy, modest] = await Promise.all([gateway.newPartner(), gateway.newPartner()]);
    await inject(Call.GET_BALANCE, WireFault.LATE_ANSWER, 100, 250);
    const asked = Array.from({ length: 40 }, () => get(greedy, `/v1/accounts/${greedy.account}/balance`));
    const answers = Promise.all(asked);
    for (let count = 0; count < 3; count += 1) {
      const answer = await get(modest, `/v1/accounts/${modest.account}/balance`);
      assert.equal(answer.status, 200, 'the other partner does not wait for all of them');
    }
    const statuses = (await answers).map(({ status }) => status);
    await gateway.controls.clearDirectives({}, callTimeout);
    const served = statuses.filter((status) => status === 200).length;
    assert.ok(served >= 4 && served <= 14, `${served} of 40 were answered in time`);
    assert.equal(statuses.filter((status) => status === 503).length, 40 - served);
  });

  it('a read that hangs delays no order', async () => {
    const partner = await gateway.newPartner();
    await inject(Call.GET_BALANCE, WireFault.HANG, 10);
    const hanging = Promise.all([1, 2, 3, 4].map(() => get(partner, `/v1/accounts/${partner.account}/balance`)));
    for (let count = 0; count < 5; count += 1) {
      const began = performance.now();
      const placed = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 + count });
      assert.equal(placed.status, 201, placed.text);
      assert.ok(performance.now() - began < patient(1_000));
    }
    assert.deepEqual(
      (await hanging).map(({ status }) => status),
      [503, 503, 503, 503],
    );
    await gateway.controls.clearDirectives({}, callTimeout);
  });

  it('a read of a range of days follows Lagos midnight, and a walk that began before it keeps its days', async () => {
    const partner = await gateway.newPartner();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const path = `/v1/accounts/${partner.account}/trades`;
      const today = lagosDay(Date.now());
      const tomorrow = lagosDay(nextLagosMidnight(Date.now()));
      const addTrades = (executedAtMs: number) =>
        gateway.controls.addTrades(
          {
            account: partner.account,
            symbol: 'GTCO',
            side: Side.BUY,
            quantity: 1n,
            priceKobo: 100n,
            count: 2,
            executedAt: timestampFromMs(executedAtMs),
          },
          callTimeout,
        );
      await addTrades(Date.now() - 30 * 86_400_000);
      assert.equal((await get(partner, `${path}?to=${tomorrow}`)).body.error.param, 'to');
      const first = (await get(partner, `${path}?limit=1`)).body;
      assert.equal(first.has_more, true);
      const ms = nextLagosMidnight(Date.now()) - Date.now() + 1_000;
      await admin.clock.advanceClock({ by: { seconds: BigInt(Math.ceil(ms / 1_000)) } }, admin.options);
      assert.equal((await get(partner, `${path}?to=${tomorrow}`)).status, 200);
      assert.deepEqual((await get(partner, path)).body.data, [], 'what was 30 days ago is 31 days ago now');
      const second = (await get(partner, `${path}?limit=1&cursor=${first.next_cursor}`)).body;
      assert.deepEqual([second.data.length, second.has_more], [1, false]);
      assert.equal((await get(partner, `${path}?to=${today}`)).body.data.length, 2);
    } finally {
      admin.close();
    }
  });
});
