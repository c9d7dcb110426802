/** The sandbox's operations that decide what becomes of objects, over a simulator that notes what it is told. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { steeringHandlers } from '../../../../src/gateway/partners/sandbox/handlers.ts';
import { type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import { ReportKind } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { AccountActivity, AccountState } from '../../../../src/gen/marina/gateway/v1/accounts_pb.ts';
import { SandboxCall, SandboxFault } from '../../../../src/gen/marina/gateway/v1/sandbox_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';

const own = new Set(['A1', 'ord_a', 'app_a', 'wdr_a']);
const call = { caller: { partnerId: 'par_a' } } as never;

/** The handlers for a partner with one account and one object of each kind. `answer` is what the simulator says. */
function open(answer: () => object = () => ({})) {
  const told: (readonly [what: string, request: Record<string, unknown>])[] = [];
  const simulator = new Proxy(
    {},
    {
      get:
        (_, what: string) =>
        async (request: Record<string, unknown>, { timeoutMs }: { timeoutMs: number }) => {
          assert.equal(timeoutMs, 700);
          told.push([what, request]);
          return answer();
        },
    },
  );
  const read = async ({ values }: Statement) => {
    const given = values.flat(3).map(String);
    return given.includes('par_a') && given.some((value) => own.has(value)) ? [{ account: 'A1' }] : [];
  };
  const kinds = {
    ofId: (id: string) =>
      /^(ord|app|wdr|alc)_/.test(id)
        ? {
            table: {
              find: ({ partnerId = '', id: wanted = '' }: Record<string, string>) =>
                statement('FIND', partnerId, wanted),
            },
          }
        : undefined,
  };
  return { told, handlers: steeringHandlers({ read } as never, kinds as never, simulator as never, 700) };
}
type Handlers = ReturnType<typeof open>['handlers'];

/** The code of a refusal, with its field. */
async function refusedWith(done: unknown): Promise<string | undefined> {
  const refusal = await (done as Promise<unknown>).then(() => undefined).catch((error: ApiError) => error);
  return refusal && [refusal.code, refusal.param].filter((word) => word !== undefined).join(' ');
}

describe('what a partner makes the sandbox do', () => {
  const ofAccounts = [
    'forceOrder',
    'forceAllocation',
    'forceWithdrawal',
    'setFunds',
    'setAccountState',
    'settleTrades',
  ] as const;
  const ofOrders = ['fillOrder', 'expireOrder', 'rejectOrder', 'repeatReport'] as const;
  const ofObjects = {
    decideApplication: 'application',
    forceDocument: 'application',
    decideWithdrawal: 'withdrawal',
  } as const;
  const prefixes = { application: 'app', withdrawal: 'wdr' } as const;
  const ask = (handlers: Handlers, name: keyof Handlers, request: object) =>
    (handlers[name] as (request: object, call: never) => unknown)({ forbids: [], ...request }, call);

  it('what a partner makes the sandbox do concerns its own accounts and objects alone, each of the right kind', async () => {
    const { told, handlers } = open();
    for (const name of ofAccounts) {
      assert.equal(await refusedWith(ask(handlers, name, { account: 'A2' })), 'unknown_account account', name);
      assert.equal(await refusedWith(ask(handlers, name, {})), 'unknown_account account', name);
    }
    for (const name of ofOrders) {
      for (const id of ['ord_b', 'app_a', 'A1', undefined]) {
        assert.equal(await refusedWith(ask(handlers, name, { id })), 'order_not_found', `${name} ${id}`);
      }
    }
    for (const [name, kind] of Object.entries(ofObjects)) {
      for (const id of [`${prefixes[kind]}_b`, 'ord_a', undefined]) {
        const refused = await refusedWith(ask(handlers, name as keyof Handlers, { id }));
        assert.equal(refused, `${kind}_not_found`, `${name} ${id}`);
      }
    }
    assert.equal(told.length, 0, 'the simulator is told nothing');
    for (const name of ofAccounts)
      assert.equal(await refusedWith(ask(handlers, name, { account: 'A1' })), undefined, name);
    for (const name of ofOrders) assert.equal(await refusedWith(ask(handlers, name, { id: 'ord_a' })), undefined, name);
    for (const [name, kind] of Object.entries(ofObjects)) {
      const id = `${prefixes[kind]}_a`;
      assert.equal(await refusedWith(ask(handlers, name as keyof Handlers, { id })), undefined, name);
    }
    assert.equal(told.length, ofAccounts.length + ofOrders.length + Object.keys(ofObjects).length);
    const limited = told.filter(([, request]) => 'times' in request);
    assert.equal(limited.length, 4);
    assert.ok(
      limited.every(([, { partner, times }]) => partner === 'par_a' && times === 1),
      'directives count for him',
    );
  });

  it('what a partner makes the sandbox do may be a fault of calls for an account or an object of its own, and for no call that has none of these', async () => {
    const { told, handlers } = open();
    const inject = (request: object) =>
      handlers.injectFault({ fault: SandboxFault.LOSE_ANSWER, ...request } as never, call);
    const submit = { call: SandboxCall.SUBMIT_ORDER };
    for (const [request, refused] of [
      [submit, 'missing_required_field account'],
      [{ ...submit, account: 'A2' }, 'unknown_account account'],
      [{ ...submit, id: 'ord_b' }, 'not_found'],
      [{ ...submit, account: 'A1', id: 'ord_b' }, 'not_found'],
      [{ ...submit, account: 'A2', id: 'ord_a' }, 'unknown_account account'],
      [{ call: SandboxCall.LOOK_UP_APPLICATION, account: 'A1' }, 'missing_required_field id'],
      [{ call: SandboxCall.SEND_DOCUMENT, account: 'A1' }, 'missing_required_field id'],
    ] as const) {
      assert.equal(await refusedWith(inject(request)), refused, JSON.stringify(request));
    }
    assert.equal(told.length, 0);
    const usual = { partner: 'par_a', delayMs: 0, times: 1, fault: WireFault.LOSE_ANSWER, clientId: '' };
    await inject({ ...submit, account: 'A1' });
    assert.deepEqual(told.at(-1), ['injectFault', { ...usual, account: 'A1', call: Call.SUBMIT_ORDER }]);
    await inject({ call: SandboxCall.SEND_DOCUMENT, id: 'app_a', times: 3, delayMs: 9 });
    const ofDocument = { ...usual, account: '', clientId: 'app_a', call: Call.SEND_DOCUMENT, times: 3, delayMs: 9 };
    assert.deepEqual(told.at(-1), ['injectFault', ofDocument]);
  });

  it('what a partner makes the sandbox do may restrict an account: all activities unless some are named, each once, and none of an account that is not', async () => {
    const { told, handlers } = open();
    const set = (request: object) =>
      handlers.setAccountState({ account: 'A1', forbids: [], ...request } as never, call);
    const restricted = { state: AccountState.RESTRICTED };
    assert.equal(
      await refusedWith(set({ state: AccountState.ACTIVE, forbids: [AccountActivity.BUY] })),
      'invalid_request forbids',
    );
    const twice = [AccountActivity.BUY, AccountActivity.SELL, AccountActivity.BUY];
    assert.equal(await refusedWith(set({ ...restricted, forbids: twice })), 'invalid_request forbids');
    assert.equal(told.length, 0);
    const all = [AccountActivity.BUY, AccountActivity.SELL, AccountActivity.FUND, AccountActivity.WITHDRAW];
    assert.deepEqual((await set(restricted)).forbids, all);
    assert.deepEqual((await set({ ...restricted, forbids: [AccountActivity.SELL] })).forbids, [AccountActivity.SELL]);
    assert.deepEqual((await set({ state: AccountState.ACTIVE })).forbids, []);
    const forbidden = told.map(([, { restrictions }]) =>
      (restrictions as { forbids: number[] }[]).map(({ forbids }) => forbids.length),
    );
    assert.deepEqual(forbidden, [[4], [1], []]);
  });

  it('what a partner makes the sandbox do is refused by an error of the catalogue if the simulator refuses it, or does not answer', async () => {
    const refusedBy = (code: status) => {
      const { handlers } = open(() => {
        throw Object.assign(new Error('no'), { code, details: 'a sentence' });
      });
      return Promise.all(
        [
          handlers.fillOrder({ id: 'ord_a' } as never, call),
          handlers.decideApplication({ id: 'app_a' } as never, call),
          handlers.decideWithdrawal({ id: 'wdr_a' } as never, call),
          handlers.settleTrades({ account: 'A1' } as never, call),
        ].map(refusedWith),
      );
    };
    const notFound = ['order_not_found', 'application_not_found', 'withdrawal_not_found', 'not_found'];
    assert.deepEqual(await refusedBy(status.NOT_FOUND), notFound);
    const final = ['order_not_cancelable', 'invalid_request', 'invalid_request', 'invalid_request'];
    assert.deepEqual(await refusedBy(status.FAILED_PRECONDITION), final);
    assert.deepEqual(await refusedBy(status.INVALID_ARGUMENT), Array(4).fill('invalid_request'));
    assert.deepEqual(await refusedBy(status.RESOURCE_EXHAUSTED), Array(4).fill('limit_exceeded'));
    for (const code of [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.UNKNOWN, status.INTERNAL]) {
      assert.deepEqual(await refusedBy(code), Array(4).fill('service_unavailable'), status[code]);
    }
  });

  it('what a partner makes the sandbox do shows the quantity and the price of a report that is a trade', async () => {
    for (const [kind, shown] of [
      [ReportKind.TRADE, [7n, 90n]],
      [ReportKind.EXPIRED, [undefined, undefined]],
    ] as const) {
      const { handlers } = open(() => ({ report: { kind, quantity: 7n, priceKobo: 90n } }));
      const report = await handlers.fillOrder({ id: 'ord_a' } as never, call);
      assert.deepEqual([report.id, report.quantity, report.priceKobo], ['ord_a', ...shown]);
    }
  });
});
