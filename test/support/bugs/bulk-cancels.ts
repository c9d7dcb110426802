import type { SeededBug } from '../fault/seeded-bugs.ts';

const folder = 'src/gateway/trading/orders/bulk-cancels';
const tests = 'test/gateway/trading/orders/bulk-cancels';
const job = `${tests}/job.integration.test.ts`;
const whole = `${tests}/bulk-cancels.integration.test.ts`;

/** Bugs of the jobs that cancel open orders. */
export const bulkCancelBugs: readonly SeededBug[] = [
  {
    name: 'a process that lost its lease sends a second cancel for a job',
    file: `${folder}/job.ts`,
    find: 'current.sentAt !== null || current.result !== null || hasEnded',
    replace: 'hasEnded',
    test: job,
    pattern: 'lets no process send a second cancel for the job',
  },
  {
    name: 'a job that was stopped still sends a cancel',
    file: `${folder}/job.ts`,
    find: 'current.result !== null || hasEnded)',
    replace: 'current.result !== null)',
    test: job,
    pattern: 'lets no process send a cancel for a job that has ended',
  },
  {
    name: 'an order whose cancel was unconfirmed first is counted twice',
    file: `${folder}/table.ts`,
    find: 'Number(after.result === result) - Number(before.result === result)',
    replace: 'Number(after.result === result)',
    test: job,
    pattern: 'counts an order in one counter alone',
  },
  {
    name: 'a job begins cancels while the broker is away',
    file: `${folder}/worker.ts`,
    find: ' || !(await this.#isBrokerThere(signal))',
    replace: '',
    test: whole,
    pattern: 'waits while the broker is away',
  },
  {
    name: 'a job takes orders of the other side and of other keys',
    file: `${folder}/open-orders.ts`,
    find: 'const wanted = { account, symbol, side, keyId };',
    replace: 'const wanted = { account, symbol, side: null, keyId: null && side && keyId };',
    test: whole,
    pattern: 'takes the orders of one account',
  },
  {
    name: 'a wrong filter cancels more orders than the operator expects',
    file: 'src/gateway/operators/calls/bulk-cancels.ts',
    find: 'if (found.length > atMost) {',
    replace: 'if (found.length > atMost + 1_000) {',
    test: whole,
    pattern: 'is asked for more orders than it names',
  },
  {
    name: 'a job leaves out orders whose outcome is unknown',
    file: `${folder}/open-orders.ts`,
    find: "const openStates = ['sending', 'uncertain', 'pending', 'partially_filled'] as const;",
    replace: "const openStates = ['pending', 'partially_filled'] as const;",
    test: whole,
    pattern: 'waits for orders that are being sent',
  },
];
