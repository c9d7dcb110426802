import type { SeededBug } from '../fault/seeded-bugs.ts';

const credits = 'test/gateway/operators/calls/proposals/credits.integration.test.ts';
const rights = 'test/gateway/operators/calls/proposals/rights.integration.test.ts';
const mechanism = 'src/gateway/operators/calls/proposals/four-eyes.ts';

/** Bugs by which one operator moves money, or gives rights to move it, alone. */
export const operatorBugs: readonly SeededBug[] = [
  {
    name: 'a payment of exactly the amount needs a second operator',
    file: 'src/gateway/operators/calls/proposals/rules.ts',
    find: 'return aboveKobo !== undefined && amountKobo > aboveKobo;',
    replace: 'return aboveKobo !== undefined && amountKobo >= aboveKobo;',
    test: credits,
    pattern: 'of exactly the amount',
  },
  {
    name: 'an approved payment has no entry of its own in the audit',
    file: mechanism,
    find: 'return { writes: [...record(row, change.seen, after), ...writes, own], result: { result } };',
    replace: 'return { writes: [...record(row, change.seen, after), ...writes], result: { result } };',
    test: credits,
    pattern: 'approves a payment once',
  },
  {
    name: 'a proposal that was applied is applied again',
    file: mechanism,
    find: 'if (!mayApply(row)) return { writes: [], result: {} };',
    replace: 'mayApply(row);',
    test: credits,
    pattern: 'approves a payment once',
  },
  {
    name: 'two payments of a partner cannot wait at the same time',
    file: 'src/gateway/operators/calls/wallets.ts',
    find: '...{ partnerId, objectId: partnerId, about, touches: about },',
    replace: "...{ partnerId, objectId: partnerId, about: 'credit', touches: about },",
    test: credits,
    pattern: 'wait at the same time',
  },
  {
    name: 'limits that changed since are raised to what was proposed before',
    file: mechanism,
    find: "if (changed !== '') throw unlikeProposed(changed);",
    replace: '',
    test: rights,
    pattern: 'if a limit was changed since it was proposed',
  },
  {
    name: 'a limit that is set back to a higher default is not a higher limit',
    file: 'src/gateway/operators/calls/partner-rights.ts',
    find: 'const inForce = (limits: AgreedLimits) => ({ ...defaultLimits, ...limits });',
    replace:
      'const inForce = (limits: AgreedLimits) => ({ ordersKoboPerDay: 0n, allocationsKoboPerDay: 0n, ...limits });',
    test: rights,
    pattern: 'also by setting it back to the default',
  },
  {
    name: 'a key that may fund is issued with that scope at once',
    file: 'src/gateway/operators/calls/keys.ts',
    find: 'const scopes = isOn ? wanted.filter((scope) => !movesMoney(scope)) : wanted;',
    replace: 'const scopes = isOn ? wanted : wanted;',
    test: rights,
    pattern: 'issued without that scope',
  },
  {
    name: 'scopes are added to a key whose row somebody else changed',
    file: 'src/gateway/operators/calls/key-scopes.ts',
    find: "if (seals.prove(key, row.seal instanceof Buffer ? row.seal : null) !== 'sealed') {",
    replace: "if (seals.prove(key, row.seal instanceof Buffer ? row.seal : null) === 'unsealed') {",
    test: rights,
    pattern: 'has no right seal',
  },
];
