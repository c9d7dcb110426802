import type { SeededBug } from '../fault/seeded-bugs.ts';

const orders = 'test/gateway/trading/orders/moments.fault.test.ts';
const cancel = 'src/gateway/trading/orders/cancel.ts';
const cancelStored = 'commit update orders, insert open_cancels, insert order_steps';

/** Bugs between two writes, at the second failure in a row, and of a count that is never given back. */
export const momentBugs: readonly SeededBug[] = [
  {
    name: 'a cancel that failed stays under way for ever',
    file: cancel,
    find: 'const cancelling = this.#cancel(order, call, check).finally(() => this.#underWay.delete(order.id));',
    replace:
      'const cancelling = this.#cancel(order, call, check).then((ended) => (this.#underWay.delete(order.id), ended));',
    test: orders,
    pattern: `${cancelStored}, refused: every`,
  },
  {
    name: 'a cancel that was stored and not sent blocks every later one',
    file: cancel,
    find: 'if (order.cancelUntil !== null && mayCancelBeUnderWay(order.cancelUntil, realNow)) {',
    replace: 'if (order.cancelUntil !== null) {',
    test: orders,
    pattern: `${cancelStored}, killed right after it`,
  },
  {
    name: 'a cancel without an answer blocks the next one for minutes',
    file: cancel,
    find: 'change.note({ cancelUntil: clock.realNow() });',
    replace: 'change.note({ cancelUntil: clock.realNow() + longestCancelMs - 1_000 });',
    test: orders,
    pattern: 'call Orders/CancelOrder, refused: every',
  },
  {
    name: 'attempts of webhooks that could not be recorded twice are forgotten',
    file: 'src/gateway/delivery/webhooks/record/recorder.ts',
    find: '        await pause(retryMs, signal);',
    replace:
      '        if (retryMs > retryAfterMs.first) this.#waiting = this.#waiting.slice(batch.length);\n        await pause(retryMs, signal);',
    test: orders,
    pattern: 'commit update webhook_deliveries, insert webhook_attempts, refused twice in a row',
  },
  {
    name: 'an order is only due to be looked up if its sender lives',
    file: 'src/gateway/trading/submission/submit.ts',
    find: 'const times = { notAfter, checkAt: notAfter + clockSkewMs };',
    replace: 'const times = { notAfter, checkAt: notAfter + 600_000 };',
    test: orders,
    pattern: 'commit insert orders, insert order_steps, insert usage_days, killed right after it',
  },
  {
    name: 'a connection to the database counts as in use for ever after a failure',
    file: 'src/gateway/store/database.ts',
    find: 'this.#refusedWrite = writeObstacle(error) ?? this.#refusedWrite;',
    replace: 'this.#refusedWrite = writeObstacle(error) ?? this.#refusedWrite;\n      this.#inUse += 1;',
    test: orders,
    pattern: 'commit insert orders, insert order_steps, insert usage_days, refused: every',
  },
];
