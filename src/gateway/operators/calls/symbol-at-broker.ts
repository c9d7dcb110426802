import { ApiError } from '../../edge/errors.ts';
import type { BrokerRecords } from '../../trading/broker/broker.ts';
import type { ReadQueue } from '../../trading/broker/read-queue.ts';
import { operatorsReader } from './call.ts';

interface InstrumentReads {
  readonly records: Pick<BrokerRecords, 'instruments'>;
  readonly reads: Pick<ReadQueue, 'readFor'>;
}

/** Whether the broker lists an instrument of a symbol; undefined: it does not say so in time. */
export type IsListed = (symbol: string) => Promise<boolean | undefined>;

/** A stop is in force before the question, so its answer may not wait long. */
const timeoutMs = 2_000;

export function symbolsAtBroker({ records, reads }: InstrumentReads): IsListed {
  return async (symbol) => {
    try {
      const instruments = await reads.readFor(operatorsReader, (time) => records.instruments(time), timeoutMs);
      return instruments.some((each) => each.symbol === symbol);
    } catch (error) {
      if (error instanceof ApiError) return undefined;
      throw error;
    }
  };
}
