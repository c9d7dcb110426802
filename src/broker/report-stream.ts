import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { BrokerClock } from './clock.ts';

/** A stream of reports says something every second; one silent for this long is taken for dead. */
const longestSilenceMs = 5_000;

/** Some of a stream of reports. */
interface Batch<Report> {
  readonly reports: readonly Report[];
  /** The number of the last report there is; 0: not told. */
  readonly lastNumber: bigint;
  readonly brokerTime?: Timestamp | undefined;
}

/**
 * The batches of a stream of reports, which must say something every few seconds and leave nothing out at its end. Throws
 * when it breaks, falls silent or ends, and when the broker has fewer reports than it was asked to go on from. Such a broker
 * has lost reports or counts anew, and what it says next would be taken for old.
 */
export async function* watchReports<Report extends { readonly number: bigint }>(
  open: (signal: AbortSignal) => AsyncIterable<Batch<Report>>,
  afterNumber: bigint,
  signal: AbortSignal,
  clock: Pick<BrokerClock, 'streamed'>,
): AsyncIterable<readonly Report[]> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), longestSilenceMs);
  try {
    let last = afterNumber;
    for await (const { reports, lastNumber, brokerTime } of open(AbortSignal.any([signal, silence.signal]))) {
      timer.refresh();
      clock.streamed(brokerTime);
      if (lastNumber !== 0n && lastNumber < afterNumber) {
        throw new Error(`the broker's last report is ${lastNumber}, and reports up to ${afterNumber} were applied`);
      }
      for (const { number } of reports) if (number > last) last = number;
      yield reports;
      if (lastNumber > last) throw new Error('the stream left out its last reports');
      timer.refresh(); // The time the taker needed is not the broker's silence.
    }
    throw new Error('the stream of reports ended');
  } finally {
    clearTimeout(timer);
  }
}
