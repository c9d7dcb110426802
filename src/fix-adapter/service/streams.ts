import { once } from 'node:events';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ServerWritableStream, status } from '@grpc/grpc-js';
import {
  type StreamReportsRequest,
  type StreamReportsResponse,
  StreamReportsResponseSchema,
} from '../../gen/marina/broker/v1/orders_pb.ts';
import type { Logger } from '../../kit/log.ts';
import { Waiters } from '../../kit/worker.ts';
import type { FixStore } from '../store/store.ts';
import { reportMessage } from './orders.ts';

type StreamCall = ServerWritableStream<StreamReportsRequest, StreamReportsResponse>;

const maxPerMessage = 500;
const maxStreams = 50;
/** A silent stream has a message as often. */
const heartbeatMs = 1_000;

/** Streams of reports: first those that are recorded, then new ones, each stream at its reader's pace. */
export class AdapterStreams {
  #open = 0;
  readonly #waiters = new Waiters();

  constructor(
    private readonly store: FixStore,
    private readonly now: () => number,
    private readonly log: Logger,
  ) {}

  /** There are new reports. */
  notify(): void {
    this.#waiters.wakeAll();
  }

  serve(call: StreamCall): void {
    if (this.#open >= maxStreams) {
      fail(call, status.RESOURCE_EXHAUSTED, 'too many streams are open');
      return;
    }
    if (call.request.afterNumber < 0n) {
      fail(call, status.INVALID_ARGUMENT, 'after_number must be 0 or more');
      return;
    }
    const ended = new AbortController();
    call.on('cancelled', () => ended.abort());
    call.on('error', () => ended.abort());
    this.#open += 1;
    this.#run(call, ended.signal)
      .catch((error: unknown) => this.log.warn({ err: error }, 'a stream of reports failed'))
      .finally(() => {
        this.#open -= 1;
        if (!call.cancelled && !call.destroyed) fail(call, status.UNAVAILABLE, 'the stream of reports ended');
      });
  }

  async #run(call: StreamCall, ended: AbortSignal): Promise<void> {
    let position = call.request.afterNumber;
    while (!ended.aborted) {
      // Before it reads, so that no report comes between.
      const changed = this.#waiters.wait(heartbeatMs, ended);
      const { reports, last } = await this.store.reportsAfter(position, maxPerMessage);
      position = reports.at(-1)?.number ?? position;
      const isFull = reports.length === maxPerMessage;
      const message = create(StreamReportsResponseSchema, {
        reports: reports.map(reportMessage),
        // Below the number that was asked for if reports were lost. Never one that a later message has.
        lastNumber: reports.length > 0 && (isFull || position > last) ? position : last,
        brokerTime: timestampFromMs(this.now()),
      });
      if (!call.write(message)) await once(call, 'drain', { signal: ended }).catch(() => {});
      if (!isFull) await changed;
    }
  }
}

function fail(call: StreamCall, code: status, details: string): void {
  call.emit('error', { code, details, message: details });
}
