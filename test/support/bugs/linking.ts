import type { SeededBug } from '../fault/seeded-bugs.ts';

const linking = 'test/gateway/operators/calls/link-account.integration.test.ts';
const lostKey = 'test/gateway/operators/secret-keys/lost-key.integration.test.ts';

/** Bugs in the calls and the settings that the people who run Marina use. */
export const linkingBugs: readonly SeededBug[] = [
  {
    name: 'a live gateway links an account that the broker does not have if it is linked unchecked',
    file: 'src/gateway/operators/calls/account-at-broker.ts',
    find: "if (answer === 'not_found') {",
    replace: "if (answer === 'not_found' && !isUnchecked) {",
    test: linking,
    pattern: 'is refused if the broker does not have it, also unchecked',
  },
  {
    name: 'a live gateway links an account though the broker did not answer',
    file: 'src/gateway/operators/calls/account-at-broker.ts',
    find: "if (answer === 'found' || isUnchecked) return;",
    replace: "if (answer !== 'not_offered' || isUnchecked) return;",
    test: linking,
    pattern: 'is linked only unchecked if the broker does not answer',
  },
  {
    name: 'a sandbox refuses to link an account before the broker has it',
    file: 'src/gateway/operators/calls/accounts.ts',
    find: "if (database.environment === 'live') requireAtBroker(",
    replace: 'requireAtBroker(',
    test: linking,
    pattern: 'is linked before the broker has it',
  },
  {
    name: 'the audit has the whole answer of the broker about an account',
    file: 'src/gateway/operators/calls/accounts.ts',
    find: 'atBroker: found?.answer,',
    replace: "atBroker: 'holderInitials' in found ? found.holderInitials : found.answer,",
    test: linking,
    pattern: 'nothing of them is logged or stored',
  },
  {
    name: 'a changed ring that has lost a key of the last 30 days is taken over',
    file: 'src/gateway/operators/secret-keys/open-ring.ts',
    find: 'lastUsedAt >= now - neededForMs);',
    replace: 'lastUsedAt >= now + neededForMs);',
    test: lostKey,
    pattern: 'is refused, and the former keys stay in use',
  },
];
