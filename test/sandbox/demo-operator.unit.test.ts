import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type AdvanceClockRequest, AdvanceClockResponseSchema, Clock } from '../../src/gen/marina/admin/v1/clock_pb.ts';
import { CreditWalletResponseSchema, Wallets } from '../../src/gen/marina/admin/v1/wallets_pb.ts';
import { Controls, GetDayResponseSchema } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { serviceDefinition } from '../../src/kit/grpc-service.ts';
import { demoOperator } from '../../src/sandbox/demo-operator.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-file.ts';
import { answering, type StandInCall, startStandIn } from '../support/grpc-stand-in.ts';

const dayMs = 86_400_000;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** A sandbox with a clock that the operator moves, of an exchange on which trades of a day settle on another. */
async function sandbox({ now, settlement, moves = true }: { now: string; settlement: string; moves?: boolean }) {
  let at = Date.parse(now);
  const calls: StandInCall[] = [];
  const { address, stop } = await startStandIn([
    [
      serviceDefinition(Clock),
      {
        advanceClock: answering('advance', calls, ({ by }: AdvanceClockRequest) => {
          if (moves) at += Number(by?.seconds) * 1_000;
          return create(AdvanceClockResponseSchema, {});
        }),
      },
    ],
    [
      serviceDefinition(Wallets),
      { creditWallet: answering('credit', calls, () => create(CreditWalletResponseSchema, {})) },
    ],
    [
      serviceDefinition(Controls),
      {
        getDay: answering('day', calls, () =>
          create(GetDayResponseSchema, {
            now: timestampFromDate(new Date(at)),
            today: dayOf(at),
            nextDayAt: timestampFromDate(new Date(Math.floor(at / dayMs) * dayMs + dayMs)),
            // The day on which a trade of the day settles moves on with the day.
            settlementDay: dayOf(at) <= now.slice(0, 10) ? settlement : '2030-01-01',
          }),
        ),
      },
    ],
  ]);
  const operator = demoOperator({
    admin_address: address,
    simulator_address: address,
    operator_token: 'the token',
  } as Sandbox);
  const advances = () =>
    calls.flatMap(({ name, request, token }) =>
      name === 'advance' ? [{ seconds: (request as unknown as AdvanceClockRequest).by?.seconds, token }] : [],
    );
  return { operator, calls, advances, stop };
}

describe('the operator of a demo', () => {
  it('a payment is recorded for its partner, with its amount and its reference', async () => {
    const { operator, calls, stop } = await sandbox({ now: '2026-11-30T10:00:00Z', settlement: '2026-12-01' });
    await operator.credit('par_1', 50_000_000, 'demo 1');
    const [{ name, request, token } = { name: '', request: {}, token: '' }] = calls;
    assert.deepEqual([name, token, calls.length], ['credit', 'Bearer the token', 1]);
    const { partnerId, amountKobo, bankReference } = request;
    assert.deepEqual(
      { partnerId, amountKobo, bankReference },
      { partnerId: 'par_1', amountKobo: 50_000_000n, bankReference: 'demo 1' },
    );
    stop();
  });

  it('the clock is moved day by day until the day on which today’s trades settle, just past each midnight', async () => {
    const { operator, advances, stop } = await sandbox({ now: '2026-11-30T23:00:00.400Z', settlement: '2026-12-03' });
    assert.equal(await operator.settlementDay(), '2026-12-03');
    const token = 'Bearer the token';
    // 59 min 59.6 s are whole seconds, and one more; after that it is a moment past midnight.
    assert.deepEqual(advances()[0], { seconds: 3_601n, token });
    assert.equal(advances().length, 3);
    for (const { seconds } of advances().slice(1)) assert.ok(Number(seconds) >= 86_400 && Number(seconds) <= 86_401);
    stop();
  });

  it('the clock stays when it is the day already', async () => {
    const { operator, advances, stop } = await sandbox({ now: '2026-11-30T10:00:00Z', settlement: '2026-11-30' });
    assert.equal(await operator.settlementDay(), '2026-11-30');
    assert.deepEqual(advances(), []);
    stop();
  });

  it('a clock that does not move ends the demo after two weeks', async () => {
    const { operator, advances, stop } = await sandbox({
      now: '2026-11-30T10:00:00Z',
      settlement: '2026-12-01',
      moves: false,
    });
    await assert.rejects(operator.settlementDay(), /it should be 2026-12-01 by now, and is 2026-11-30/);
    assert.ok(advances().length >= 14 && advances().length <= 16, `${advances().length} days`);
    stop();
  });

  it('a settlement two weeks away is reached', async () => {
    const { operator, stop } = await sandbox({ now: '2026-12-20T10:00:00Z', settlement: '2027-01-03' });
    assert.equal(await operator.settlementDay(), '2027-01-03');
    stop();
  });
});
