import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Message } from '@bufbuild/protobuf';
import { type Defect, DefectiveAdapter } from '../../../support/defective-adapter.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';

const tooManyDigits = `${'9'.repeat(30)}.0`;
const maxDigits = `${'9'.repeat(18)}.9`;
const never = { $typeName: 'google.protobuf.Timestamp', seconds: 2n ** 62n, nanos: 0 } as const;
const yearTenThousand = { ...never, seconds: 253_402_300_800n } as const;

describe('a broker that states numbers and instants which no answer can have', () => {
  let gateway: TestGateway;
  let adapter: DefectiveAdapter | undefined;
  /** Changes the answer of each method. */
  let spoil: (answer: Record<string, unknown>) => void = () => undefined;

  before(async () => {
    const spoiled = async ({ next }: { next(): Promise<Message> }) => {
      const answer = await next();
      spoil(answer as unknown as Record<string, unknown>);
      return answer;
    };
    const defect = {
      orders: { estimateOrder: spoiled },
      accounts: { getMarket: spoiled },
      reference: { listMarketDays: spoiled },
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

  it('is answered with exchange_error', async () => {
    const { account, key } = await gateway.newPartner();
    const body = { account, symbol: 'GTCO', side: 'buy', quantity: 10, type: 'market' };
    const estimate = () => gateway.rest('POST', '/v1/orders/estimate', { key, body });
    const calendar = () => gateway.rest('GET', '/v1/market/calendar', { key });
    const market = () => gateway.rest('GET', '/v1/market', { key });
    const daysOf = (answer: Record<string, unknown>) =>
      (answer.days as Record<string, unknown>[]).filter(({ opensAt }) => opensAt !== undefined);
    const spoilings: [() => ReturnType<typeof estimate>, typeof spoil][] = [
      ...['totalKoboDecimal', 'commissionKoboDecimal', 'statutoryFeesKoboDecimal', 'otherFeesKoboDecimal'].map(
        (name): [typeof estimate, typeof spoil] => [
          estimate,
          (answer) => {
            answer[name] = tooManyDigits;
          },
        ],
      ),
      ...[never, yearTenThousand, { ...never, seconds: -never.seconds }].flatMap(
        (at): [typeof calendar, typeof spoil][] => [
          [
            calendar,
            (answer) => {
              for (const day of daysOf(answer)) day.closesAt = at;
            },
          ],
          [
            calendar,
            (answer) => {
              for (const day of daysOf(answer)) day.opensAt = at;
            },
          ],
          [
            calendar,
            (answer) => {
              for (const day of daysOf(answer))
                Object.assign(day, { opensAt: at, closesAt: { ...at, nanos: 1_000_000 } });
            },
          ],
          [
            market,
            (answer) => {
              answer.nextOpenAt = at;
            },
          ],
        ],
      ),
    ];
    for (const [ask, change] of spoilings) {
      spoil = change;
      const { status, body: answer, text } = await ask();
      assert.deepEqual([status, answer.error?.code], [502, 'exchange_error'], `${change}: ${text}`);
    }
    spoil = () => undefined;
    for (const ask of [estimate, calendar, market]) assert.equal((await ask()).status, 200);
  });

  it('is answered with the largest number that fits', async () => {
    const { account, key } = await gateway.newPartner();
    spoil = (answer) => {
      answer.totalKoboDecimal = maxDigits;
    };
    const body = { account, symbol: 'GTCO', side: 'buy', quantity: 10, type: 'market' };
    const { status, text } = await gateway.rest('POST', '/v1/orders/estimate', { key, body });
    assert.equal(status, 200, text);
    assert.match(text, /"total_kobo": ?1000000000000000000\b/);
    assert.match(text, /"total_kobo_decimal": ?"999999999999999999\.9"/);
  });
});
