/** The reports of an adapter's processes about its session, for operators. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { wishSession } from '../../../src/fix-adapter/operations/changes.ts';
import { SessionControl } from '../../../src/fix-adapter/operations/control.ts';
import { fixSession, type SessionRow } from '../../../src/fix-adapter/operations/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { eventually } from '../../support/eventually.ts';
import { openFixDatabase } from '../../support/fix/adapter.ts';

/** A process that has, or had, the session. */
class Holder {
  state = 'up';
  reason = '';
  /** How many reports it has sent to the database. */
  writes = 0;
  /** How many of the next reports the database does not take, and how often its wish cannot be read. */
  failures = { writes: 0, reads: 0 };
  now = 1_000_000_000_000;
  resumed = 0;
  control!: SessionControl;
  readonly #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly fence: bigint,
  ) {}

  async start(): Promise<this> {
    const { fence, database } = this;
    const writing: Partial<Database> = {
      read: async (statement) => {
        this.#fail('reads');
        return database.read(statement);
      },
      write: async (statement) => {
        this.#fail('writes');
        const result = await database.write(statement);
        this.writes += 1;
        return result;
      },
    };
    this.control = new SessionControl({
      ...{ database: writing as Database, fence, show: (text) => text, now: () => this.now },
      log: createLogger({ name: 'fix', level: 'silent' }),
      session: {
        run: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
        status: () => ({ state: this.state, reason: this.reason }),
        resume: () => {
          this.resumed += 1;
        },
      },
    });
    await this.control.open();
    this.#running = Promise.all([this.control.run(this.#stop.signal), this.control.worker.run(this.#stop.signal)]);
    return this;
  }

  /** Changes the state of its session, and waits until it has said so. */
  async says(state: string, reason = ''): Promise<void> {
    const before = this.writes;
    this.now += 5_000;
    [this.state, this.reason] = [state, reason];
    await eventually(() => assert.ok(this.writes > before));
  }

  #fail(kind: 'reads' | 'writes'): void {
    if (this.failures[kind] === 0) return;
    this.failures[kind] -= 1;
    throw new Error('the database is away');
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

describe('what is written down of the session for operators', () => {
  let opened: Awaited<ReturnType<typeof openFixDatabase>>;
  let database: Database;
  let fence = 10n;
  let holders: Holder[] = [];
  before(async () => {
    opened = await openFixDatabase(4);
    ({ database } = opened);
  });
  after(() => opened.close());
  beforeEach(async (context) => {
    fence += 10n;
    holders = [];
    await database.write(fixSession.set({ id: 1n }, { wish: 'on', fence, state: 'none', reason: '' }));
    assert.ok('after' in context);
    context.after(() => Promise.all(holders.map((holder) => holder.stop())));
  });

  async function begin(at: bigint): Promise<Holder> {
    const holder = new Holder(database, at);
    holders.push(holder);
    await holder.start();
    await eventually(() => assert.equal(holder.writes, 1));
    return holder;
  }
  async function row(): Promise<SessionRow> {
    const [found] = await database.read(fixSession.find({ id: 1n }));
    return fixSession.all.read(found ?? assert.fail('there is no row of the session'));
  }
  const wish = async (wanted: 'on' | 'out') => {
    const { request } = await row();
    await database.write(fixSession.set({ id: 1n }, { wish: wanted, request: request + 1n }));
    return request + 1n;
  };

  for (const [who, behind, counts] of [
    ['a later holder of the lease', 1n, false],
    ['the holder of the lease many times later', 9n, false],
    ['the same holder', 0n, true],
    ['an earlier holder', -1n, true],
  ] as const) {
    it(`the state for operators is ${counts ? 'what a process says' : 'not what a process says'} after ${who} has said something`, async () => {
      const process = await begin(fence);
      await process.says('connecting', 'the line is down');
      const said = { fence: fence + behind, state: 'up', reason: '', obeyed: 0n, since: 5 };
      await database.write(fixSession.set({ id: 1n }, said));
      for (const [state, reason] of [
        ['waiting', 'the exchange is silent'],
        ['waiting', 'it is asked again'],
        ['up', ''],
        ['closed', 'the day is over'],
      ] as const) {
        await process.says(state, reason);
        const now = await row();
        const expected = counts ? [fence, state, reason] : [said.fence, 'up', ''];
        assert.deepEqual([now.fence, now.state, now.reason], expected);
        assert.equal(now.since === said.since, !counts);
      }
    });
  }

  it('the state for operators names the later of two holders, whichever of them writes last', async () => {
    const former = await begin(fence);
    const latter = await begin(fence + 1n);
    await former.says('closed', 'another process has it');
    await latter.says('waiting', 'the exchange is silent');
    await former.says('connecting', 'it woke');
    assert.deepEqual([(await row()).fence, (await row()).state], [fence + 1n, 'waiting']);
  });

  it('an operator’s wish counts as carried out when the session has ended, and a former holder takes that back no more', async () => {
    const [former, latter] = [await begin(fence), await begin(fence + 1n)];
    const request = await wish('out');
    await eventually(async () =>
      assert.deepEqual([(await row()).state, (await row()).obeyed], ['logged_out', request]),
    );
    const again = await wish('on');
    await eventually(async () => assert.deepEqual([(await row()).state, (await row()).obeyed], ['up', again]));
    assert.deepEqual([former.resumed, latter.resumed], [1, 1]);
    await former.says('closed', 'it woke');
    assert.deepEqual([(await row()).state, (await row()).obeyed, (await row()).fence], ['up', again, fence + 1n]);
  });

  for (const [now, wanted, isRequest] of [
    ['on', 'out', true],
    ['out', 'on', true],
    // It also ends the wait after refused Logons.
    ['on', 'on', true],
    ['out', 'out', false],
  ] as const) {
    it(`an operator's wish that the session be ${wanted} is ${isRequest ? 'a' : 'no'} request when it was ${now}`, async () => {
      await database.write(fixSession.set({ id: 1n }, { wish: now }));
      const process = await begin(fence);
      const before = await row();
      const call = { operator: 'ada', action: 'Session.Change', reason: 'agreed with the desk', at: 5 };
      const { changed, request } = await wishSession(database, wanted, call as never);
      assert.deepEqual([changed, request], [now !== wanted, before.request + (isRequest ? 1n : 0n)]);
      await eventually(async () => assert.equal((await row()).obeyed, request));
      assert.equal(process.resumed, wanted === 'on' ? 1 : 0);
    });
  }

  it('the state for operators says how old it is, whatever the reasons for it are', async () => {
    const process = await begin(fence);
    await process.says('waiting', 'the exchange is silent');
    const { since } = await row();
    assert.equal(since, process.now);
    await process.says('waiting', 'it is asked again');
    assert.deepEqual([(await row()).since, (await row()).reason], [since, 'it is asked again']);
    await process.says('up');
    assert.equal((await row()).since, process.now);
  });

  it('the state for operators is written, and their wish obeyed, once the database answers again, however often it did not', async () => {
    const process = await begin(fence);
    process.failures.writes = 2;
    await process.says('waiting', 'the exchange is silent');
    assert.deepEqual([process.failures.writes, (await row()).state, (await row()).since], [0, 'waiting', process.now]);
    process.failures.reads = 2;
    const request = await wish('out');
    await eventually(async () => assert.equal((await row()).obeyed, request));
    assert.deepEqual(
      [process.failures.reads, (await row()).state, process.control.isLoggedOut],
      [0, 'logged_out', true],
    );
  });
});
