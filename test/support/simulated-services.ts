import { Metadata, type status } from '@grpc/grpc-js';
import { createBackOfficeNonsense } from '../../src/simulator/back-office/nonsense.ts';
import { BackOfficeRecords } from '../../src/simulator/back-office/records.ts';
import { WithdrawalRecords } from '../../src/simulator/back-office/withdrawal-records.ts';
import { clearingNonsense } from '../../src/simulator/clearing/nonsense.ts';
import { Reads } from '../../src/simulator/clearing/reads.ts';
import { ClearingRecords } from '../../src/simulator/clearing/records.ts';
import { createNonsense } from '../../src/simulator/exchange/nonsense.ts';
import { Records } from '../../src/simulator/exchange/records.ts';
import type { OrderReport } from '../../src/simulator/model.ts';
import { Lies } from '../../src/simulator/statements/lies.ts';
import { StatementRecords } from '../../src/simulator/statements/records.ts';
import type { Disturbance } from '../../src/simulator/wire/disturbance.ts';
import type { Front } from '../../src/simulator/wire/front.ts';
import { RpcError, unanswered, type WireCall } from '../../src/simulator/wire/rpc.ts';
import { Wire } from '../../src/simulator/wire/wire.ts';
import type { SimulatedBroker } from './simulated-broker.ts';

/** The parts that the services of a simulated broker share, without servers. */
export function simulatedServices(broker: SimulatedBroker) {
  const { world, writer, directives } = broker;
  const database = broker.database.asDatabase;
  const lies = new Lies();
  /** Records each effect of the services besides their answers. */
  const done: string[] = [];
  const disturbable = (name: string) => ({
    disturb: ({ repeat, swap, omit }: Disturbance) => void done.push(`${name} disturbed ${repeat} ${swap} ${omit}`),
    breakAll: () => void done.push(`${name} broken`),
    repeat: ({ number }: OrderReport) => void done.push(`${name} repeat ${number}`),
  });
  const front = { reset: (peer: string) => void done.push(`reset ${peer}`) } as unknown as Front;
  return {
    ...{ world, writer, directives, lies, done, reads: new Reads() },
    records: new Records(database),
    clearing: new ClearingRecords(database, world),
    backOffice: new BackOfficeRecords(database, world.funds.startCashKobo),
    withdrawals: new WithdrawalRecords(database),
    statements: new StatementRecords(database, lies),
    wire: new Wire(directives, front, new AbortController().signal),
    exchange: { fillDelay: { min: 0, max: 0 }, directives },
    settings: { decisionDelay: { min: 0, max: 0 }, directives },
    nonsense: createNonsense(),
    backOfficeNonsense: createBackOfficeNonsense(),
    clearingNonsense,
    streams: disturbable('orders'),
    applicationStreams: disturbable('applications'),
    withdrawalStreams: disturbable('withdrawals'),
    dropOthers: (peer: string) => {
      done.push(`drop others than ${peer}`);
      return 3;
    },
    clockMoved: () => void done.push('clock moved'),
  };
}

/** A call of a gateway. */
export function wireCall(headers: Readonly<Record<string, string>> = {}): WireCall {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return { cancelled: false, getPeer: () => 'peer', metadata, on: () => undefined };
}

/** The answer of a call that has one. */
export async function answered<Answer>(call: Promise<Answer | typeof unanswered>): Promise<Answer> {
  const answer = await call;
  if (answer === unanswered) throw new Error('The call has no answer');
  return answer;
}

/** The code of a call that fails; `undefined` for one that does not. */
export async function refusalOf(call: () => unknown): Promise<{ code: status; message: string } | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    if (error instanceof RpcError) return { code: error.code, message: error.message };
    throw error;
  }
}
