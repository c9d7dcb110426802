import { once } from 'node:events';
import { type ServerWritableStream, type ServiceError, status } from '@grpc/grpc-js';
import type { Logger } from '../lib/log.ts';
import { pause } from '../lib/worker.ts';
import { type Disturbance, Disturber } from './disturbance.ts';
import type { ReportFeed } from './report-feed.ts';
import { isWhole } from './validation.ts';

/** How many reports one message holds at most. */
const maxPerMessage = 500;
/** How long a stream is silent before it shows that it lives. */
const heartbeatMs = 1_000;
/** How long the first of some new reports waits for others, so that under load they share a message. */
const lingerMs = 5;
/** How many heartbeats a report that is to be swapped waits for its partner. */
const maxHeldHeartbeats = 3;
const maxStreams = 200;

type StreamCall<Message> = ServerWritableStream<{ readonly afterNumber: bigint }, Message>;

/** Makes a stream's message of reports and the number of the last one that was looked at. */
export type StreamMessage<Report, Message> = (reports: readonly Report[], lastNumber: bigint) => Message;

/** One open stream. */
interface Stream<Report> {
  /** What is sent once more with the next message. */
  readonly repeated: Report[];
  readonly disturber: Disturber<Report>;
  /** Ends it, with a status when it is broken and not merely left. */
  readonly ended: AbortController;
}

/** Serves the streams of one kind of reports: what is recorded first, then live, each stream at its reader's pace. */
export class ReportStreams<Report extends { readonly number: number }, Message> {
  readonly #open = new Set<Stream<Report>>();
  /** Misbehaviour asked for while no stream was open; the next one takes it. */
  #pending: Disturbance[] = [];

  constructor(
    private readonly feed: ReportFeed<Report>,
    private readonly message: StreamMessage<Report, Message>,
    private readonly log: Logger,
  ) {}

  /** Serves one stream until it is left or broken. */
  serve(call: StreamCall<Message>): void {
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

  /** Makes every open stream misbehave, or the next one when none is open. */
  disturb(disturbance: Disturbance): void {
    if (this.#open.size === 0) this.#pending = [...this.#pending.slice(-99), disturbance];
    for (const stream of this.#open) stream.disturber.add(disturbance);
  }

  /** Sends a report once more in every open stream, within a heartbeat. */
  repeat(report: Report): void {
    for (const { repeated } of this.#open) if (repeated.length < maxPerMessage) repeated.push(report);
  }

  /** Breaks all open streams. */
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
          await pause(lingerMs, ended.signal);
          continue;
        }
        heldHeartbeats = disturber.holds ? heldHeartbeats + 1 : 0;
        if (heldHeartbeats >= maxHeldHeartbeats) sent = disturber.release();
      } else if (sent.length === 0) {
        continue;
      }
      // Less than it was asked to go on from, when it lost what it had.
      const lastNumber = BigInt(Math.min(position, this.feed.last));
      await write(call, this.message([...sent, ...repeated.splice(0)], lastNumber), ended.signal);
    }
  }
}

/** Writes one message and waits until the reader has room for another. */
async function write<Message>(call: StreamCall<Message>, message: Message, ended: AbortSignal): Promise<void> {
  if (ended.aborted || call.write(message)) return;
  await once(call, 'drain', { signal: ended }).catch(() => {});
}

function fail(call: StreamCall<never>, code: status, details: string): void {
  const error: Partial<ServiceError> = { code, details, message: details };
  call.emit('error', error);
}
