/** The memory of a FIX session's record against its rows, after each write. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Changes, FixStore, type Kept, type Known } from '../../../src/fix-adapter/store/store.ts';
import type { FixReport } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { openFixDatabase } from '../../support/fix/adapter.ts';
import { fixOrder } from '../../support/fix-order.ts';

const none: Changes = { orders: [], cancels: [], reports: [], tradeChanges: [], findings: [], passedOver: false };
const lease = { name: 'memory', fence: 1n };

/** One process that writes about an order, beside another order, and a second process that reads the rows. */
class Session {
  readonly #store: FixStore;
  readonly #id: string;
  readonly #other: string;
  #count = 0;

  constructor(
    private readonly database: Database,
    run: number,
  ) {
    this.#store = new FixStore(database, lease);
    [this.#id, this.#other] = [`ord_${run}a`, `ord_${run}b`];
  }

  /** Stores both orders. */
  async begin(): Promise<void> {
    for (const id of [this.#id, this.#other]) await this.#send({ kind: 'order', row: fixOrder({ id }) });
  }

  /** Each write about the order that there is. */
  readonly writes = {
    question: () => this.#send({ kind: 'question', orderId: this.#id }),
    cancel: () => {
      const row = { id: `${this.#id}.${this.#next()}`, orderId: this.#id, requestedAt: 0, startedAt: 0, number: 0n };
      const said = { exchangeReason: null, exchangeText: null };
      return this.#send({ kind: 'cancel', row: { ...row, ...said, state: 'sending' } });
    },
    'unwritten order': () => this.#store.unsent([this.#id], []),
    'unwritten cancels': async () => this.#store.unsent([], await this.#cancels()),
    'unanswered cancels': async () => this.#store.lost(await this.#cancels()),
    absence: () => this.#store.absent(this.#id),
    acceptance: () => this.#changeOrder({ state: 'open', exchangeOrderId: 'X' }, 'accepted'),
    trade: () => this.#changeOrder({ filled: 5n }, 'trade'),
    end: () => this.#changeOrder({ state: 'final' }, 'cancelled'),
    'corrected trade': () =>
      this.#receive(() => {
        const change = { orderId: this.#id, execId: this.#next(), execRefId: 'e1', kind: 'corrected' } as const;
        return { tradeChanges: [{ ...change, quantity: 2n, priceKobo: 100n, counted: 2n, at: 0 }] };
      }),
    'refused cancels': () =>
      this.#receive(({ cancels }) => ({
        cancels: cancels
          .filter(({ orderId, state }) => orderId === this.#id && state === 'sending')
          .map((before) => ({ before, after: { ...before, state: 'refused', exchangeText: 'too late' } })),
      })),
    'message that was passed over': () => this.#receive(() => ({ passedOver: true })),
    'report that names no order': () => this.#receive(() => ({ unmatched: [{ side: 'buy' }] })),
    'report that names another order': () => this.#receive(() => ({ misnamed: [{ side: 'buy' }] })),
    finding: () => {
      const about = { orderId: this.#id, execId: '', detail: '', facts: null, bytes: null };
      return this.#store.note({ ...about, what: 'not_ended', at: 1 }, this.#next());
    },
    'new numbering': () => this.#store.startDay(1_000),
  } satisfies Record<string, () => Promise<unknown>>;

  /** Checks that the process decides about the next message by what the rows have. */
  async check(when: string): Promise<void> {
    const fresh = new FixStore(this.database, lease);
    for (const ids of [[this.#id, this.#other], [this.#id], [this.#other]]) {
      const [remembered, stored] = [await this.#receive(() => ({}), ids), await this.#receive(() => ({}), ids, fresh)];
      assert.deepEqual(remembered, stored, when);
    }
  }

  /** Changes what a message of the exchange changes, and returns what was known of the orders before. */
  async #receive(change: (known: Known) => Partial<Changes>, ids = [this.#id, this.#other], store = this.#store) {
    let given: unknown;
    await store.received(1, false, { orderIds: ids, numbers: [] }, (known) => {
      const { orders, cancels, executed } = known;
      const byId = (one: { readonly id: string }, other: { readonly id: string }) => one.id.localeCompare(other.id);
      given = structuredClone({
        orders: orders.toSorted(byId),
        cancels: cancels.toSorted(byId),
        executed: ids.map((id) => new Map(executed.get(id))),
      });
      return { changes: { ...none, ...change(known) }, result: undefined };
    });
    return given;
  }

  #changeOrder(more: Partial<Known['orders'][number]>, kind: FixReport['kind']) {
    return this.#receive(({ orders }) => {
      const facts = { at: 0, quantity: 1n, priceKobo: 100n, rejectReason: null, counted: 1n };
      const said = { exchangeReason: null, exchangeText: null };
      return {
        orders: orders.filter(({ id }) => id === this.#id).map((before) => ({ before, after: { ...before, ...more } })),
        reports: [{ orderId: this.#id, exchangeOrderId: 'X', kind, execId: this.#next(), ...facts, ...said }],
      };
    });
  }

  async #send(kept: Kept): Promise<void> {
    const number = Number((await this.#store.numbers()).nextOut);
    await this.#store.sending([{ number, kept }], number + 1, 1);
  }

  async #cancels(): Promise<string[]> {
    return (await this.#store.cancelsOf(this.#id)).map(({ id }) => id);
  }

  #next(): string {
    this.#count += 1;
    return `e${this.#count}`;
  }
}

type Write = keyof Session['writes'];

describe('the memory of the record of a FIX session', () => {
  let opened: Awaited<ReturnType<typeof openFixDatabase>>;
  let runs = 0;
  before(async () => {
    opened = await openFixDatabase(2);
    const sql = "INSERT INTO leases (name, holder, fence, expires_at) VALUES ('memory', 'a', 1, NOW(3))";
    await opened.database.write(statement(sql));
    await new FixStore(opened.database, lease).take();
  });
  after(() => opened.close());

  const lives: Readonly<Record<string, readonly Write[]>> = {
    'in doubt': ['cancel'],
    open: ['acceptance', 'trade', 'corrected trade', 'cancel'],
    'in doubt of which an earlier cancel was refused': ['cancel', 'refused cancels', 'cancel'],
  };
  for (const [life, earlier] of Object.entries(lives)) {
    it(`remembers an order ${life} as the record has it, after each write about it`, async () => {
      for (const last of Object.keys(new Session(opened.database, runs).writes) as Write[]) {
        runs += 1;
        const session = new Session(opened.database, runs);
        await session.begin();
        for (const write of [...earlier, last]) await session.writes[write]();
        await session.check(last);
      }
    });
  }
});
