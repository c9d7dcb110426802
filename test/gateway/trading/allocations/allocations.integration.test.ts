import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { AllocationOutcome } from '../../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { verifyLedger } from '../../../support/ledger.ts';

/** Amounts that always make the simulated broker behave in one way. */
const magic = { hangs: 999_005, lost: 999_006, lostRejection: 999_007, reset: 999_008, resetAfter: 999_009 };

let gateway: TestGateway;
let admin: ReturnType<typeof adminClient>;

/** Starts the gateway of a suite, and stops it after its tests. */
function withGateway(): void {
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });
}

async function newPartner(kobo: bigint, limits: { allocationsKoboPerDay?: bigint } = {}): Promise<TestPartner> {
  const partner = await gateway.newPartner({ limits });
  if (kobo > 0n) await gateway.fund(partner, kobo);
  return partner;
}

async function read(partner: TestPartner, path: string) {
  const answer = await gateway.rest('GET', path, { key: partner.key });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

const get = (partner: TestPartner, id: string) => read(partner, `/v1/allocations/${id}`);

async function wallet(partner: TestPartner): Promise<[number, number, number]> {
  const { available_kobo, reserved_kobo, posted_kobo } = await read(partner, '/v1/wallet');
  return [available_kobo, reserved_kobo, posted_kobo];
}

/** The wallet's entries, oldest first, without the payments. */
async function entries(partner: TestPartner) {
  const { data } = await read(partner, '/v1/wallet/transfers?limit=100');
  return data.filter(({ type }: { type: string }) => type !== 'credit').reverse();
}

async function used(partner: TestPartner): Promise<string> {
  const [row] = await gateway.database.read(
    statement(`SELECT used_kobo FROM usage_days WHERE partner_id = ? AND kind = 'allocations'`, partner.id),
  );
  return String(row?.used_kobo ?? 0);
}

async function events(partner: TestPartner) {
  return (await read(partner, '/v1/events?limit=100')).data;
}

async function atBroker(id: string) {
  const { allocations } = await gateway.controls.listAllocations({ clientAllocationId: id }, callTimeout);
  return allocations[0];
}

async function cash(account: string): Promise<bigint | undefined> {
  for (let afterAccount = ''; ; ) {
    const { accounts, hasMore } = await gateway.controls.listAccounts({ afterAccount }, callTimeout);
    const found = accounts.find((each) => each.account === account);
    if (found !== undefined || !hasMore) return found?.cashKobo;
    afterAccount = accounts.at(-1)?.account ?? '';
  }
}

async function submissions(partner: TestPartner): Promise<number> {
  const { messages } = await gateway.controls.listMessages({}, callTimeout);
  return messages.filter(({ call, account }) => call === Call.SUBMIT_ALLOCATION && account === partner.account).length;
}

async function countStored(partner: TestPartner): Promise<number> {
  const [row] = await gateway.database.read(
    statement('SELECT COUNT(*) AS count FROM allocations WHERE partner_id = ?', partner.id),
  );
  return Number(row?.count);
}

/** Such an allocation is settled by what the broker's record says of it. */
function settles(name: string, amount: number, ...states: readonly string[]): void {
  it(`an allocation that ${name} is uncertain, its money reserved, until the broker's record settles it`, async () => {
    const partner = await newPartner(1_000_000n);
    const key = randomUUID();
    const body = { amount_kobo: amount };
    const made = await gateway.allocate(partner, body, key);
    assert.equal(made.status, 201, made.text);
    assert.equal(made.body.state, 'uncertain');
    assert.equal(typeof made.body.reason, 'string');
    await eventually(async () => assert.equal((await get(partner, made.body.id)).state, states[1]), 15_000);
    const booked = states[1] === 'booked';
    assert.deepEqual(await wallet(partner), booked ? [1_000_000 - amount, 0, amount] : [1_000_000, 0, 0]);
    assert.equal(await submissions(partner), 1);
    assert.equal(await used(partner), booked ? String(amount) : '0');
    const replay = await gateway.allocate(partner, body, key);
    assert.equal(replay.status, 200, 'it was first answered with the object');
    assert.equal(replay.headers.get('idempotent-replayed'), 'true');
    assert.equal(replay.body.state, states[1]);
    await eventually(async () => {
      const published = await events(partner);
      assert.deepEqual(
        published.map(({ type }: { type: string }) => type),
        states.map((state) => `allocation.${state}`),
      );
      assert.deepEqual(published[1].data, replay.body);
    });
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });
}

describe('allocations', { concurrency: 4 }, () => {
  withGateway();

  it('one is booked: the money leaves the wallet, arrives on the account, and the partner hears of it', async () => {
    const partner = await newPartner(10_000n);
    const cashBefore = (await cash(partner.account)) ?? 0n;
    const made = await gateway.allocate(partner, {
      account: partner.account.toLowerCase(),
      amount_kobo: 4_000,
      client_reference: 'invoice 7',
    });
    assert.equal(made.status, 201, made.text);
    const { id, created_at, updated_at, broker_reference } = made.body;
    assert.match(id, /^alc_[a-z2-7]{20}$/);
    assert.equal(made.headers.get('location'), `/v1/allocations/${id}`);
    assert.deepEqual(Object.entries(made.body), [
      ['object', 'allocation'],
      ['id', id],
      ['state', 'booked'],
      ['account', partner.account],
      ['amount_kobo', 4_000],
      ['client_reference', 'invoice 7'],
      ['broker_reference', broker_reference],
      ['reason', null],
      ['reject_reason', null],
      ['created_at', created_at],
      ['updated_at', updated_at],
    ]);
    assert.deepEqual(await get(partner, id), made.body);
    const record = (await atBroker(id))?.record;
    assert.equal(record?.outcome, AllocationOutcome.BOOKED);
    assert.equal(broker_reference, record?.brokerReference);
    assert.equal(await cash(partner.account), cashBefore + 4_000n);
    assert.deepEqual(await wallet(partner), [6_000, 0, 4_000]);
    const [reserve, post, ...more] = await entries(partner);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [reserve, post].map(({ type, amount_kobo, available_change_kobo, allocation, account, bank_reference }) => [
        type,
        amount_kobo,
        available_change_kobo,
        allocation,
        account,
        bank_reference,
      ]),
      [
        ['reserve', 4_000, -4_000, id, null, null],
        ['post', 4_000, 0, id, partner.account, null],
      ],
    );
    await eventually(async () => {
      const [event, ...others] = await events(partner);
      assert.deepEqual(others, []);
      assert.equal(event.type, 'allocation.booked');
      assert.equal(event.timestamp, updated_at);
      assert.equal(JSON.stringify(event.data), made.text);
    });
    assert.equal(await used(partner), '4000');
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });

  const reasons = {
    999001: 'account_not_at_broker',
    999002: 'account_restricted',
    999003: 'amount_not_accepted',
    999004: 'rejected_by_broker',
  };
  for (const [amount, reason] of Object.entries(reasons)) {
    it(`one the broker rejects with ${reason} is quoted, given back, and the replay says it again`, async () => {
      const partner = await newPartner(1_000_000n);
      const key = randomUUID();
      const body = { amount_kobo: Number(amount) };
      let id = '';
      for (const tries of [1, 2]) {
        const answer = await gateway.allocate(partner, body, key);
        assert.equal(answer.status, 422, `try ${tries}: ${answer.text}`);
        const { type, code, reject_reason } = answer.body.error;
        assert.deepEqual([type, code, reject_reason], ['wallet_error', 'allocation_rejected', reason]);
        id = answer.headers.get('location')?.split('/').at(-1) ?? '';
      }
      const allocation = await get(partner, id);
      assert.deepEqual([allocation.state, allocation.reject_reason], ['rejected', reason]);
      assert.equal(typeof allocation.reason, 'string');
      assert.equal(allocation.broker_reference, null);
      assert.equal(await submissions(partner), 1);
      assert.deepEqual(await wallet(partner), [1_000_000, 0, 0]);
      assert.deepEqual(
        (await entries(partner)).map((entry: Record<string, unknown>) => [entry.type, entry.available_change_kobo]),
        [
          ['reserve', -Number(amount)],
          ['return', Number(amount)],
        ],
      );
      assert.equal(await used(partner), '0');
      await eventually(async () =>
        assert.deepEqual(
          (await events(partner)).map(({ type }: { type: string }) => type),
          ['allocation.rejected'],
        ),
      );
    });
  }

  settles('was booked and its answer lost', magic.lost, 'uncertain', 'booked');
  settles('was rejected and its answer lost', magic.lostRejection, 'uncertain', 'rejected');
  settles('never came to the broker', magic.hangs, 'uncertain', 'refused');

  it('while one is uncertain its money stays reserved, and one like it is refused', async () => {
    const partner = await newPartner(2_000_000n);
    const first = await gateway.allocate(partner, { amount_kobo: magic.hangs });
    assert.deepEqual(await wallet(partner), [2_000_000 - magic.hangs, magic.hangs, 0]);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
    const key = randomUUID();
    const similar = await gateway.allocate(partner, { amount_kobo: magic.hangs }, key);
    assert.deepEqual([similar.status, similar.body.error.code], [409, 'similar_allocation_unresolved']);
    assert.equal(similar.headers.get('retry-after'), '1');
    assert.equal((await gateway.allocate(partner, { amount_kobo: 1 })).status, 201, 'another amount is no such one');
    await eventually(async () => assert.equal((await get(partner, first.body.id)).state, 'refused'), 15_000);
    const again = await gateway.allocate(partner, { amount_kobo: magic.hangs }, key);
    assert.equal(again.status, 201, again.text);
  });

  it('an answer that makes no sense settles nothing; the look-up does', async () => {
    const partner = await newPartner(10_000n);
    const { account } = partner;
    const nonsense = { account, fault: WireFault.NONSENSE, times: 1 };
    await gateway.controls.injectFault({ ...nonsense, call: Call.SUBMIT_ALLOCATION }, callTimeout);
    await gateway.controls.injectFault({ ...nonsense, call: Call.LOOK_UP_ALLOCATION }, callTimeout);
    const made = await gateway.allocate(partner, {});
    assert.deepEqual([made.status, made.body.state], [201, 'uncertain']);
    await eventually(async () => {
      const { state } = await get(partner, made.body.id);
      assert.ok(state === 'booked' || state === 'refused', `it is ${state}`);
    }, 15_000);
    const isThere = (await atBroker(made.body.id)) !== undefined;
    assert.equal((await get(partner, made.body.id)).state, isThere ? 'booked' : 'refused');
    assert.deepEqual(await wallet(partner), isThere ? [9_000, 0, 1_000] : [10_000, 0, 0]);
  });

  it('twenty requests with one key at once lead to one allocation, one reserve and one send', async () => {
    const partner = await newPartner(100_000n);
    const key = randomUUID();
    const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.allocate(partner, {}, key)));
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(answers.filter(({ status }) => status === 200).length, 19);
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
    assert.equal(await submissions(partner), 1);
    assert.deepEqual(await wallet(partner), [99_000, 0, 1_000]);
  });

  it('the same key with another allocation is refused, and case makes no other one', async () => {
    const partner = await newPartner(100_000n);
    const key = randomUUID();
    const first = await gateway.allocate(partner, {}, key);
    const same = await gateway.allocate(partner, { account: partner.account.toLowerCase() }, key);
    assert.deepEqual([same.status, same.body.id], [200, first.body.id]);
    for (const change of [{ amount_kobo: 1_001 }, { client_reference: 'x' }, { account: 'OTHER' }]) {
      const other = await gateway.allocate(partner, change, key);
      assert.deepEqual([other.status, other.body.error.code], [409, 'duplicate_allocation']);
      assert.equal(other.body.error.type, 'idempotency_error');
      assert.equal(other.body.error.param, 'Idempotency-Key');
    }
    // The keys of orders are another operation's.
    assert.equal((await gateway.place(partner, { symbol: 'SIM-REST' }, key)).status, 201);
    assert.equal(await countStored(partner), 1);
  });

  it('a refusal before anything is stored leaves the key free, in the order of checks', async () => {
    const partner = await newPartner(5_000n, { allocationsKoboPerDay: 10_000n });
    const key = randomUUID();
    const tries: readonly [Record<string, unknown>, string, string][] = [
      [{ account: 'NOBODYS', amount_kobo: 20_000 }, 'unknown_account', 'invalid_request_error'],
      [{ amount_kobo: 10_001 }, 'limit_exceeded', 'limit_error'],
      [{ amount_kobo: 5_001 }, 'wallet_too_low', 'wallet_error'],
    ];
    for (const [allocation, code, type] of tries) {
      const answer = await gateway.allocate(partner, allocation, key);
      assert.deepEqual([answer.status, answer.body.error.code, answer.body.error.type], [422, code, type]);
      assert.equal(answer.headers.get('location'), null);
    }
    assert.equal(await countStored(partner), 0);
    assert.equal(await submissions(partner), 0);
    assert.equal(await used(partner), '0');
    assert.deepEqual(await wallet(partner), [5_000, 0, 0]);
    assert.equal((await gateway.allocate(partner, { amount_kobo: 5_000 }, key)).status, 201, 'to the last kobo');
    assert.deepEqual(await wallet(partner), [0, 0, 5_000]);
    const empty = await gateway.allocate(partner, { amount_kobo: 1 });
    assert.equal(empty.body.error.code, 'wallet_too_low');
    assert.match(empty.body.error.message, /0 kobo available.*needs 1\./);
  });

  it("an account is the partner's own, and an allocation is seen by its partner alone", async () => {
    const [one, two] = [await newPartner(5_000n), await newPartner(5_000n)];
    const foreign = await gateway.allocate(one, { account: two.account });
    assert.deepEqual([foreign.status, foreign.body.error.code], [422, 'unknown_account']);
    assert.equal(foreign.body.error.param, 'account');
    const { body } = await gateway.allocate(one, {});
    for (const id of [body.id, 'alc_aaaaaaaaaaaaaaaaaaaa', 'nonsense']) {
      const answer = await gateway.rest('GET', `/v1/allocations/${id}`, { key: two.key });
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'allocation_not_found']);
    }
    assert.deepEqual((await read(two, '/v1/allocations')).data, []);
  });

  it('the wallet and the day are exact when many race for the last kobo', async () => {
    const poor = await newPartner(10_000n);
    const answers = await Promise.all(Array.from({ length: 30 }, () => gateway.allocate(poor, {})));
    assert.equal(answers.filter(({ status }) => status === 201).length, 10);
    for (const { status, body } of answers.filter((answer) => answer.status !== 201)) {
      assert.deepEqual([status, body.error.code], [422, 'wallet_too_low']);
    }
    assert.deepEqual(await wallet(poor), [0, 0, 10_000]);
    assert.deepEqual(await verifyLedger(admin, poor.id), []);

    const limited = await newPartner(1_000_000n, { allocationsKoboPerDay: 10_000n });
    const others = await Promise.all(Array.from({ length: 30 }, () => gateway.allocate(limited, {})));
    assert.equal(others.filter(({ status }) => status === 201).length, 10);
    for (const { status, body } of others.filter((answer) => answer.status !== 201)) {
      assert.deepEqual([status, body.error.code], [422, 'limit_exceeded']);
      assert.match(body.error.message, /10000 kobo.*10000 kobo are used, 0 remain/);
    }
    assert.equal(await used(limited), '10000');
  });

  it('money that was given back can be used again at once', async () => {
    const partner = await newPartner(999_001n, { allocationsKoboPerDay: 999_001n });
    assert.equal((await gateway.allocate(partner, { amount_kobo: 999_001 })).status, 422);
    const again = await gateway.allocate(partner, { amount_kobo: 999_000 });
    assert.equal(again.status, 201, again.text);
    assert.deepEqual(await wallet(partner), [1, 0, 999_000]);
  });

  it('lists newest first, by each filter, page by page', async () => {
    const partner = await gateway.newPartner({ accounts: 2 });
    await gateway.fund(partner, 10_000_000n);
    const [one = '', two = ''] = partner.accounts;
    const made: string[] = [];
    for (const allocation of [
      { account: one, client_reference: 'a' },
      { account: two, client_reference: 'a ' },
      { account: two, client_reference: 'A' },
      { account: one, amount_kobo: 999_004 },
      { account: one, client_reference: 'a' },
    ]) {
      const answer = await gateway.allocate(partner, allocation);
      made.unshift(answer.body.id ?? answer.headers.get('location')?.split('/').at(-1));
    }
    const ids = async (query: string) =>
      (await read(partner, `/v1/allocations${query}`)).data.map(({ id }: { id: string }) => id);
    assert.deepEqual(await ids(''), made);
    const [fifth, fourth, third, second, first] = made;
    assert.deepEqual(await ids('?client_reference=a'), [fifth, first]);
    assert.deepEqual(await ids(`?account=${two.toLowerCase()}`), [third, second]);
    assert.deepEqual(await ids('?state=rejected'), [fourth]);
    assert.deepEqual(await ids(`?state=booked&account=${one}`), [fifth, first]);
    assert.deepEqual(await ids('?updated_since=2099-01-01T00:00:00Z'), []);
    assert.deepEqual(await ids('?updated_since=2020-01-01T00:00:00Z'), made);
    const [newest = {}] = await gateway.database.read(
      statement('SELECT updated_at FROM allocations WHERE id = ?', String(fifth)),
    );
    const changedAt = (newest.updated_at as Date).getTime(); // Partners see it to the second.
    const since = (ms: number) => ids(`?updated_since=${new Date(ms).toISOString()}`);
    assert.deepEqual(await since(changedAt), [fifth], 'one is listed since the instant at which it changed');
    assert.deepEqual(await since(changedAt + 1), [], 'and not since 1 ms after it');
    const page = await read(partner, '/v1/allocations?limit=2&state=booked');
    assert.equal(page.has_more, true);
    const next = await read(partner, `/v1/allocations?limit=2&state=booked&cursor=${page.next_cursor}`);
    assert.deepEqual(
      [...page.data, ...next.data].map(({ id }: { id: string }) => id),
      [fifth, third, second, first],
    );
    assert.deepEqual([next.has_more, next.next_cursor], [false, null]);
    const other = await gateway.rest('GET', `/v1/allocations?cursor=${page.next_cursor}`, { key: partner.key });
    assert.deepEqual([other.status, other.body.error.param], [400, 'cursor']);
    const unknown = await gateway.rest('GET', '/v1/allocations?symbol=X', { key: partner.key });
    assert.deepEqual([unknown.status, unknown.body.error.param], [400, 'symbol']);
  });

  it('needs the scope `fund`, an Idempotency-Key, and a body in which nothing is wrong', async () => {
    const partner = await newPartner(10_000n);
    const reader = await gateway.newPartner({ scopes: [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.KEYS] });
    assert.deepEqual((await gateway.allocate(reader, {})).body.error.code, 'insufficient_scope');
    const keyless = await gateway.rest('POST', '/v1/allocations', { key: partner.key, body: { account: 'A' } });
    assert.deepEqual(
      [keyless.status, keyless.body.error.code, keyless.body.error.param],
      [400, 'missing_required_field', 'Idempotency-Key'],
    );
    const mistakes: readonly [Record<string, unknown>, string, string][] = [
      [{ account: undefined }, 'missing_required_field', 'account'],
      [{ account: '' }, 'invalid_request', 'account'],
      [{ account: 'A-1' }, 'invalid_request', 'account'],
      [{ amount_kobo: undefined }, 'missing_required_field', 'amount_kobo'],
      [{ amount_kobo: null }, 'missing_required_field', 'amount_kobo'],
      [{ amount_kobo: 0 }, 'invalid_request', 'amount_kobo'],
      [{ amount_kobo: -1 }, 'invalid_request', 'amount_kobo'],
      [{ amount_kobo: 10_000_000_001 }, 'invalid_request', 'amount_kobo'],
      [{ amount_kobo: 1.5 }, 'invalid_request', 'amount_kobo'],
      [{ amount_kobo: '100' }, 'invalid_request', 'amount_kobo'],
      [{ client_reference: '' }, 'invalid_request', 'client_reference'],
      [{ client_reference: 'x'.repeat(65) }, 'invalid_request', 'client_reference'],
      [{ symbol: 'X' }, 'invalid_request', 'symbol'],
    ];
    for (const [change, code, param] of mistakes) {
      const { status, body } = await gateway.allocate(partner, change);
      assert.deepEqual([status, body.error.code, body.error.param], [400, code, param], JSON.stringify(change));
    }
    assert.equal(await countStored(partner), 0);
    const most = await gateway.allocate(partner, { amount_kobo: 10_000_000_000 });
    assert.equal(most.body.error.code, 'limit_exceeded', 'the largest amount is one that can be asked for');
  });

  it('a broker that does not honour `not_after` keeps what it does not have uncertain', async () => {
    // Its own gateway: what the broker can do holds for all of its calls.
    const own = await startGateway();
    try {
      await own.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
      const partner = await own.newPartner();
      await own.fund(partner, 1_000_000n);
      const { body } = await own.allocate(partner, { amount_kobo: magic.hangs });
      assert.equal(body.state, 'uncertain');
      const checks = async () => {
        const [row] = await own.database.read(
          statement('SELECT checks, state FROM allocations WHERE partner_id = ?', partner.id),
        );
        return row;
      };
      await eventually(async () => assert.ok(Number((await checks())?.checks) >= 5, 'it was asked often'), 20_000);
      assert.equal((await checks())?.state, 'uncertain');
      const { body: sums } = await own.rest('GET', '/v1/wallet', { key: partner.key });
      assert.equal(sums.reserved_kobo, magic.hangs);
    } finally {
      await own.stop();
    }
  });
});

/** A reset ends all calls of the connection, so no others are under way. */
describe('allocations whose connection is reset', () => {
  withGateway();

  settles('was booked and its connection reset', magic.resetAfter, 'uncertain', 'booked');
  settles('never came to the broker because of a reset', magic.reset, 'uncertain', 'refused');
});

describe('allocations of a whole gateway', () => {
  withGateway();

  it('are refused while trading is paused, and a request seen before is answered as before', async () => {
    const partner = await newPartner(10_000n);
    const key = randomUUID();
    const first = await gateway.allocate(partner, {}, key);
    await admin.trading.pauseTrading({}, admin.options);
    const refused = await gateway.allocate(partner, {});
    assert.deepEqual([refused.status, refused.body.error.code], [503, 'trading_paused']);
    assert.equal(refused.headers.get('retry-after'), '30');
    const replay = await gateway.allocate(partner, {}, key);
    assert.deepEqual([replay.status, replay.body], [200, first.body]);
    await admin.trading.resumeTrading({}, admin.options);
    assert.equal((await gateway.allocate(partner, { amount_kobo: 2 })).status, 201);
  });

  it('count for the Lagos day they were created on', async () => {
    const partner = await newPartner(10_000n, { allocationsKoboPerDay: 1_000n });
    assert.equal((await gateway.allocate(partner, {})).status, 201);
    assert.equal((await gateway.allocate(partner, {})).body.error.code, 'limit_exceeded');
    await admin.clock.advanceClock({ by: { seconds: 86_400n, nanos: 0 } }, admin.options);
    assert.equal((await gateway.allocate(partner, {})).status, 201);
    assert.equal((await gateway.allocate(partner, {})).body.error.code, 'limit_exceeded');
  });
});
