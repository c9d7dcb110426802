import { once } from 'node:events';
import { type ServerWritableStream, type ServiceError, status } from '@grpc/grpc-js';
import type { Logger } from '../../kit/log.ts';
import { pause } from '../../kit/worker.ts';
import { isWhole } from '../validation.ts';
import { type Disturbance, Disturber } from './disturbance.ts';
import type { ReportFeed } from './report-feed.ts';
import { RpcError } from './rpc.ts';

const maxPerMessage = 500;
/** The time between heartbeats of a silent stream. */
const heartbeatMs = 1_000;
/** How long the first of some new reports waits for others, so that under load they share a message. */
const batchingWindowMs = 5;
/** How many heartbeats a report that is to be swapped waits for the second one. */
const maxHeldHeartbeats = 3;
const maxStreams = 200;

type StreamCall<Message> = ServerWritableStream<{ readonly afterNumber: bigint }, Message>;

/** Makes a stream's message of reports and the number of the last report considered. */
export type StreamMessage<Report, Message> = (reports: readonly Report[], lastNumber: bigint) => Message;

interface Stream<Report> {
  readonly repeated: Report[];
  readonly disturber: Disturber<Report>;
  /** Aborted with a status if the stream is broken, without one if its reader left. */
  readonly ended: AbortController;
}

/** Serves the streams of one kind of reports: first recorded ones, then live, each at its reader's pace. */
export class SimulatorStreams<Report extends { readonly number: number }, Message> {
  readonly #open = new Set<Stream<Report>>();
  /** Misbehaviour for the next stream, because none was open. */
  #pending: Disturbance[] = [];

  constructor(
    private readonly feed: ReportFeed<Report>,
    private readonly message: StreamMessage<Report, Message>,
    private readonly log: Logger,
    /** Throws if the broker has no such stream. */
    private readonly checkOffered: () => void = () => {},
  ) {}

  /** Serves a stream until its reader leaves or it is broken. */
  serve(call: StreamCall<Message>): void {
    try {
      this.checkOffered();
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      fail(call, error.code, error.message);
      return;
    }
    if (this.#open.size >= maxStreams) {
      fail(call, status.RESOURCE_EXHAUSTED, 'Too many report streams are open.');
      return;
    }
    if (!isWhole(call.request.afterNumber)) {
      fail(call, status.INVALID_ARGUMENT, 'after_number must be 0 or more.');
      return;
    }
    const stream: Stream<Report> = { repeated: [], disturber: new Disturber(), ended: new AbortController() };
    for (const disturbance of this.#pending.splice(0)) stream.disturber.add(disturbance);
    this.#open.add(stream);
    call.on('cancelled', () => stream.ended.abort());
    call.on('error', () => stream.ended.abort());
    this.#run(call, stream)
      .catch((error: unknown) => this.log.warn({ err: error }, 'a report stream failed'))
      .finally(() => {
        this.#open.delete(stream);
        if (!call.cancelled && !call.destroyed) fail(call, status.UNAVAILABLE, 'The report stream was broken.');
      });
  }

  /** Makes every open stream misbehave, or the next one if none is open. */
  disturb(disturbance: Disturbance): void {
    if (this.#open.size === 0) this.#pending = [...this.#pending.slice(-99), disturbance];
    for (const stream of this.#open) stream.disturber.add(disturbance);
  }

  /** Repeats a report in every open stream, within a heartbeat. */
  repeat(report: Report): void {
    for (const { repeated } of this.#open) if (repeated.length < maxPerMessage) repeated.push(report);
  }

  breakAll(): void {
    for (const stream of this.#open) stream.ended.abort();
  }

  async #run(call: StreamCall<Message>, { repeated, disturber, ended }: Stream<Report>): Promise<void> {
    let position = Number(call.request.afterNumber);
    let heldHeartbeats = 0;
    while (!ended.signal.aborted) {
      const reports = await this.feed.after(position, maxPerMessage);
      position = reports.at(-1)?.number ?? position;
      let sent = disturber.apply(reports);
      if (reports.length === 0) {
        await this.feed.changed(position, heartbeatMs, ended.signal);
        if (this.feed.last > position) {
          await pause(batchingWindowMs, ended.signal);
          continue;
        }
        heldHeartbeats = disturber.holds ? heldHeartbeats + 1 : 0;
        if (heldHeartbeats >= maxHeldHeartbeats) sent = disturber.release();
      } else if (sent.length === 0) {
        continue;
      }
      // Lower than the requested position if the broker has lost reports.
      const lastNumber = BigInt(Math.min(position, this.feed.last));
      await write(call, this.message([...sent, ...repeated.splice(0)], lastNumber), ended.signal);
    }
  }
}

/** Writes a message and waits until the reader has room for another. */
async function write<Message>(call: StreamCall<Message>, message: Message, ended: AbortSignal): Promise<void> {
  if (ended.aborted || call.write(message)) return;
  await once(call, 'drain', { signal: ended }).catch(() => {});
}

function fail(call: StreamCall<never>, code: status, details: string): void {
  const error: Partial<ServiceError> = { code, details, message: details };
  call.emit('error', error);
}
