import { type Settings, usualWaits, type Waits } from '../../src/broker-check/settings.ts';
import { AccountStatus, Side } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import type { Controls } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import type { GrpcClient } from '../../src/kit/grpc-client.ts';
import { goodApplication } from './applications.ts';

const soon = { timeoutMs: 10_000 };

/** All clocks are the same in a test, and a busy machine is slow. */
export const testWaits: Waits = { ...usualWaits, skewMs: 200, slowMs: 9_000, quietMs: 3_000 };

/** The kit's settings for a simulator, or for an adapter in front of one. */
export function simulatorSettings(port: number, account: string, more: Partial<Settings> = {}): Settings {
  return {
    address: `127.0.0.1:${port}`,
    account,
    ...{ rest: 'SIM-REST', fill: 'SIM-PARTS', reject: 'SIM-REJECT', quantity: 10n },
    ...{ allocateKobo: 5_000n, rejectAllocationKobo: 999_003n },
    ...{ withdrawKobo: 3_000n, rejectWithdrawalKobo: 998_008n },
    application: { ...goodApplication, email: 'check-{n}@example.com' },
    hooks: {},
    waits: testWaits,
    ...more,
  };
}

/** Makes an account that can trade, with positions, trades and contract notes. */
export async function prepareAccount(controls: GrpcClient<typeof Controls>, account: string): Promise<void> {
  await controls.setAccount({ account, status: AccountStatus.ACTIVE }, soon);
  for (const symbol of ['DANGCEM', 'GTCO', 'MTNN']) {
    await controls.addTrades({ account, symbol, side: Side.BUY, quantity: 5n, priceKobo: 1_000n, count: 2 }, soon);
  }
  await controls.settle({ account }, soon);
}
