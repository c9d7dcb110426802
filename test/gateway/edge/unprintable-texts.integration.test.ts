import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { services } from '../../../src/broker-check/session.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Outcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { apply } from '../../support/applications.ts';
import { type Defect, DefectiveAdapter } from '../../support/defective-adapter.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';

/** Clears a screen, and turns the direction of writing. */
const bad = '\u001b[2J\u202e';

/** Makes every text of an answer unprintable, at any depth. */
function spoil(schema: DescMessage, message: Message): void {
  const values = message as unknown as Record<string, unknown>;
  for (const { localName, scalar, message: inside, fieldKind } of schema.fields) {
    const value = values[localName];
    if (value === undefined) continue;
    if (scalar === ScalarType.STRING) values[localName] = fieldKind === 'list' ? [bad] : `${value}${bad}`;
    else if (inside !== undefined) {
      for (const one of fieldKind === 'list' ? (value as Message[]) : [value as Message]) spoil(inside, one);
    }
  }
}

describe('a broker whose texts are not printable', () => {
  let gateway: TestGateway;
  let adapter: DefectiveAdapter | undefined;
  /** The methods whose answers are spoiled. */
  const spoiled = new Set<string>();
  let spoilsReports = false;

  before(async () => {
    const unary = (service: (typeof services)[keyof typeof services]) =>
      Object.fromEntries(
        service.methods.map(({ localName, output }) => [
          localName,
          async ({ next }: { next(): Promise<Message> }) => {
            const answer = await next();
            if (spoiled.has(localName)) spoil(output, answer);
            return answer;
          },
        ]),
      );
    const reports = <M extends { readonly reports: { exchangeOrderId?: string; reference?: string }[] }>(
      message: M,
    ) => {
      for (const report of message.reports) {
        if (!spoilsReports) continue;
        if (report.exchangeOrderId !== undefined) report.exchangeOrderId += bad;
        if (report.reference !== undefined) report.reference += bad;
      }
      return message;
    };
    const defect = {
      ...Object.fromEntries(Object.entries(services).map(([name, each]) => [name.toLowerCase(), unary(each)])),
      reports,
      applicationReports: reports,
    } as unknown as Defect;
    gateway = await startGateway(
      {},
      {
        prepare: async (variables) => {
          adapter = await DefectiveAdapter.start(variables.MARINA_BROKER_ADDRESS ?? '', defect);
          variables.MARINA_BROKER_ADDRESS = `127.0.0.1:${adapter.port}`;
        },
      },
    );
  });
  after(async () => {
    await gateway?.stop();
    adapter?.close();
  });

  async function during<T>(methods: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const method of methods) spoiled.add(method);
    try {
      return await work();
    } finally {
      for (const method of methods) spoiled.delete(method);
    }
  }

  const get = ({ key }: TestPartner, path: string) => gateway.rest('GET', path, { key });

  /** Neither what partners see, nor a log line, nor a row has the text as it came. */
  async function assertNowhere(...texts: readonly string[]) {
    for (const text of [...texts, ...gateway.logged]) {
      for (const shown of ['\u001b', '\\u001b', '\u202e', '\\u202e']) assert.ok(!text.includes(shown), text);
    }
    for (const [table, column] of [
      ['orders', 'exchange_order_id'],
      ['applications', 'reference'],
      ['allocations', 'broker_reference'],
      ['withdrawals', 'broker_reference'],
      ['unclaimed_reports', 'reference'],
      ['unclaimed_reports', 'object_id'],
    ]) {
      const rows = await gateway.database.read(statement(`SELECT ${column} AS text FROM ${table}`));
      for (const row of rows) assert.match(String(row.text ?? ''), /^[ -~]*$/, `${table}.${column}`);
    }
  }

  it('is answered with exchange_error where it is read', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    const { body: filled } = await gateway.place(partner, { symbol: 'SIM-FILL' });
    await eventually(async () => assert.equal((await get(partner, `/v1/orders/${filled.id}`)).body.state, 'filled'));
    for (const [method, path] of [
      ['getBalance', `/v1/accounts/${account}/balance`],
      ['listPositions', `/v1/accounts/${account}/positions`],
      ['listTrades', `/v1/accounts/${account}/trades`],
      ['listContractNotes', `/v1/accounts/${account}/contract-notes`],
      ['getAccountStatus', `/v1/accounts/${account}/status`],
      ['listTransactions', `/v1/accounts/${account}/transactions`],
      ['listStates', '/v1/reference/states'],
      ['listLgas', '/v1/reference/states/LAGOS/lgas'],
      ['listInstruments', '/v1/instruments'],
      ['listMarketDays', '/v1/market/calendar'],
    ] as const) {
      const { status, body, text } = await during([method], () => get(partner, path));
      assert.deepEqual([method, status, body.error?.code], [method, 502, 'exchange_error']);
      await assertNowhere(text);
    }
    const order = { account, symbol: 'SIM-REST', side: 'buy', quantity: 10, type: 'limit', price_kobo: 1_000 };
    for (const method of ['estimateOrder', 'getTradingContext']) {
      const path = method === 'estimateOrder' ? '/v1/orders/estimate' : '/v1/orders';
      const request = {
        key: partner.key,
        idempotencyKey: method,
        body: { ...order, symbol: method === 'estimateOrder' ? 'SIM-HALF' : 'SIM-PARTS' },
      };
      const { status, body, text } = await during([method], () => gateway.rest('POST', path, request));
      assert.deepEqual([method, status, body.error?.code], [method, 502, 'exchange_error']);
      await assertNowhere(text);
    }
  });

  it('proves nothing about what was submitted, which settles when an answer makes sense', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 100_000n);
    const submits = ['submitOrder', 'submitAllocation', 'submitWithdrawal', 'submitApplication'];
    const lookUps = ['lookUpOrder', 'lookUpAllocation', 'lookUpWithdrawal', 'lookUpApplication'];
    await during(lookUps, async () => {
      const made = await during(submits, () =>
        Promise.all([
          gateway.place(partner, { symbol: 'SIM-REST' }),
          gateway.allocate(partner, {}),
          gateway.withdraw(partner, {}),
          apply(gateway, partner),
        ]),
      );
      for (const { status, text } of made) assert.equal(status, 201, text);
      const [, allocation] = made;
      assert.equal(allocation.body.state, 'uncertain');
      await assertNowhere(...made.map(({ text }) => text));
    });
    for (const [path, settled] of [
      ['/v1/allocations', 'booked'],
      ['/v1/withdrawals', 'completed'],
    ] as const) {
      await eventually(async () => {
        const { body } = await get(partner, path);
        assert.deepEqual(
          body.data.map(({ state }: { state: string }) => state),
          [settled],
        );
      });
    }
    const order = (await get(partner, '/v1/orders')).body.data[0];
    const cancel = () => gateway.rest('DELETE', `/v1/orders/${order.id}`, { key: partner.key });
    const cancelled = await during(['cancelOrder', ...lookUps], cancel);
    assert.ok([200, 503].includes(cancelled.status), cancelled.text);
    await assertNowhere(cancelled.text);
  });

  it('has its reports applied without the texts', async () => {
    const partner = await gateway.newPartner();
    spoilsReports = true;
    try {
      const { account } = partner;
      await gateway.controls.forceOutcome({ account, outcome: Outcome.FILL, parts: 2 }, callTimeout);
      const { body } = await during(['submitOrder', 'lookUpOrder'], () =>
        gateway.place(partner, { symbol: 'SIM-REST' }),
      );
      await eventually(async () => {
        const order = await get(partner, `/v1/orders/${body.id}`);
        assert.deepEqual([order.body.state, order.body.exchange_order_id], ['filled', null]);
        await assertNowhere(order.text);
      });
    } finally {
      spoilsReports = false;
    }
    const said = gateway.logged.filter((line) => line.includes('the broker reports a text that is not printable'));
    assert.equal(said.filter((line) => line.includes('exchange_order_id')).length, 1, said.join(''));
  });
});
