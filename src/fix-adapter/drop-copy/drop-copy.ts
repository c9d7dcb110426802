import type { Duplex } from 'node:stream';
import type { Database } from '../../gateway/store/database.ts';
import type { Lease } from '../../gateway/store/lease.ts';
import type { Logger } from '../../kit/log.ts';
import { periodic } from '../../kit/worker.ts';
import type { MessageTap } from '../messages/tap.ts';
import type { Schedule } from '../session/schedule.ts';
import { FixSession } from '../session/session.ts';
import type { Outgoing, SessionSettings } from '../session/types.ts';
import type { Finding } from '../store/table.ts';
import type { FixMessage } from '../wire/message.ts';
import { messageTypes } from '../wire/tags.ts';
import { dueMark, type Mark, withMark } from './rules.ts';
import { DropCopyStore } from './store.ts';
import { tradesIn } from './trades.ts';

const compareEveryMs = 1_000;

export interface DropCopyOptions {
  readonly settings: SessionSettings;
  readonly schedule: Schedule;
  readonly address: string;
  readonly connect: (address: string, signal: AbortSignal) => Promise<Duplex>;
  readonly graceMs: number;
  readonly database: Database;
  readonly lease: Lease;
  /** A price in kobo; undefined if it is none. */
  readonly toKobo: (text: string) => bigint | undefined;
  /** The exchange's name of a symbol. */
  readonly symbolOf: (symbol: string) => string;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
  /** Notes each message in the message log; undefined: messages are not logged. */
  readonly tap: ((startedAt: number) => MessageTap) | undefined;
  readonly onState: (isExpected: boolean, isUp: boolean) => void;
  readonly onFinding: (what: string) => void;
  /** Trades came that are of orders which were not sent from here. */
  readonly onOthers: (count: number) => void;
}

/** A second session that brings copies of what the exchange reports. Trades are held against it; nothing is booked from it. */
export class DropCopy {
  readonly #store: DropCopyStore;
  readonly #session: FixSession<Outgoing>;
  #upSince: number | undefined;
  #marks: readonly Mark[] = [];

  constructor(private readonly options: DropCopyOptions) {
    const { database, lease, now, settings, schedule, address, connect, tap, symbolOf } = options;
    const log = options.log.child({ session: 'drop copy' });
    const store = new DropCopyStore(database, lease, { symbolOf, schedule });
    this.#store = store;
    this.#session = new FixSession<Outgoing>({
      settings: { ...settings, moreTypes: [messageTypes.TradeCaptureReport] },
      ...{ schedule, addresses: [address], connect, now, log, tap },
      mayWrite: () => lease.isHeld(),
      record: {
        numbers: async () => toNumbers(await store.numbers()),
        startDay: async (startedAt) => toNumbers(await store.startDay(startedAt)),
        sending: async (_messages, nextOut, nextIn) => {
          await store.sending(nextOut, nextIn);
          return [];
        },
        // Nothing but messages of the session is sent.
        unwritten: async () => {},
        received: (messages, nextIn, passedOver) => this.#received(messages, nextIn, passedOver),
      },
      events: {
        up: () => {
          this.#upSince = now();
          log.info('the drop copy is up');
        },
        down: () => {
          this.#upSince = undefined;
        },
        gapFilled: () => {},
        missed: () =>
          log.warn('the drop copy passed over messages; each trade whose copy was among them will be a finding'),
        // The session logs each one. It is a control, so none rings as those of the order session do.
        trouble: () => {},
      },
    });
  }

  /** Works until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { onState, log } = this.options;
    await this.#store.take();
    const comparing = periodic('drop copy', compareEveryMs, async () => {
      onState(this.#session.isInHours, this.#session.isUp);
      await this.#compare().catch((error: unknown) => log.warn({ err: error }, 'the drop copy could not be compared'));
    }).run(signal);
    try {
      await Promise.all([this.#session.run(signal), comparing]);
    } finally {
      onState(false, false);
    }
  }

  #received(messages: readonly FixMessage[], nextIn: number, passedOver: boolean): Promise<void> {
    const { toKobo, now } = this.options;
    const trades = messages.flatMap((message) => (message.isWhole ? tradesIn(message, toKobo) : []));
    const isMissing = passedOver || messages.some(({ isWhole }) => !isWhole);
    return this.#store.received(trades, now(), nextIn, isMissing);
  }

  async #compare(): Promise<void> {
    const { now, graceMs, onOthers } = this.options;
    const known = await this.#store.last();
    const at = now();
    this.#marks = withMark(this.#marks, { ...known, at }, graceMs);
    const { findings, others } = await this.#store.compareCopied(at - graceMs, at);
    if (others > 0) onOthers(others);
    for (const finding of findings) this.#show(finding);
    const due = dueMark(this.#marks, this.#session.isUp ? this.#upSince : undefined, at, graceMs);
    if (due === undefined) return;
    for (const finding of await this.#store.compareBooked(due.number, at)) this.#show(finding);
    for (const finding of await this.#store.compareChanged(due.changed, at)) this.#show(finding);
  }

  #show({ what, orderId, execId, detail }: Finding): void {
    this.options.onFinding(what);
    this.options.log.error({ what, orderId, execId, detail }, 'the drop copy and the order session differ');
  }
}

function toNumbers({ nextOut, nextIn, startedAt }: { nextOut: bigint; nextIn: bigint; startedAt: number }) {
  return { nextOut: Number(nextOut), nextIn: Number(nextIn), startedAt };
}
