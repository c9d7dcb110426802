import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Metadata } from '@grpc/grpc-js';
import { Clock } from '../gen/marina/admin/v1/clock_pb.ts';
import { Wallets } from '../gen/marina/admin/v1/wallets_pb.ts';
import { Controls } from '../gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../kit/grpc-client.ts';
import type { Sandbox } from './sandbox-file.ts';

const timeoutMs = 15_000;
/** Above the longest time for which exchanges close. */
const maxDays = 14;

/** The operator of a sandbox in a demo. */
export function demoOperator(sandbox: Sandbox) {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${sandbox.operator_token}`);
  const options = { timeoutMs, metadata };

  return {
    /** Records a payment of the partner. */
    async credit(partnerId: string, amountKobo: number, bankReference: string): Promise<void> {
      const wallets = createGrpcClient(Wallets, sandbox.admin_address);
      try {
        await wallets.creditWallet({ partnerId, amountKobo: BigInt(amountKobo), bankReference }, options);
      } finally {
        wallets.close();
      }
    },

    /** Moves the gateway and the simulated broker to the day on which today's trades settle. Its date: YYYY-MM-DD. */
    async settlementDay(): Promise<string> {
      const clock = createGrpcClient(Clock, sandbox.admin_address);
      const controls = createGrpcClient(Controls, sandbox.simulator_address);
      try {
        let day = await controls.getDay({}, { timeoutMs });
        const { settlementDay } = day;
        // Of an exchange that is always open a weekend is days too, on which nothing settles.
        for (let days = 0; day.today < settlementDay; days += 1) {
          if (days > maxDays) throw new Error(`it should be ${settlementDay} by now, and is ${day.today}`);
          if (day.now === undefined || day.nextDayAt === undefined) throw new Error('the simulator has no clock');
          const seconds = Math.ceil((timestampMs(day.nextDayAt) - timestampMs(day.now)) / 1000) + 1;
          await clock.advanceClock({ by: { seconds: BigInt(seconds), nanos: 0 } }, options);
          day = await controls.getDay({}, { timeoutMs });
        }
        return day.today;
      } finally {
        clock.close();
        controls.close();
      }
    },
  };
}
