import type { SeededBug } from '../fault/seeded-bugs.ts';

const credits = 'test/gateway/operators/calls/proposals/credits.integration.test.ts';
const rights = 'test/gateway/operators/calls/proposals/rights.integration.test.ts';
const mechanism = 'src/gateway/operators/calls/proposals/four-eyes.ts';

/** Bugs by which one operator moves money, or gives rights to move it, alone. */
export const operatorBugs: readonly SeededBug[] = [
  {
    name: 'an operator fills the list of proposals under his name in capitals',
    file: 'src/gateway/operators/calls/proposals/propose.ts',
    find: 'operator.toLowerCase(), now, maxLookedThrough',
    replace: 'operator, now, maxLookedThrough',
    test: 'test/gateway/operators/calls/proposals/bounds.integration.test.ts',
    pattern: 'under a name in another case',
  },
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
    find: '...{ partnerId, objectId: partnerId, about, touches: touchedByPayments },',
    replace: "...{ partnerId, objectId: partnerId, about: 'credit', touches: touchedByPayments },",
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
  {
    name: 'an export ends behind its first full page',
    file: 'src/gateway/operators/calls/reports/objects.ts',
    find: 'if (last === undefined || page.length < together) return;',
    replace: 'if (last === undefined || page.length <= together) return;',
    test: 'test/gateway/operators/calls/reports/objects.integration.test.ts',
    pattern: 'is whole when',
  },
  {
    name: 'an export does not have an order whose id was made after midnight',
    file: 'src/gateway/operators/calls/reports/days.ts',
    find: 'const idMarginMs = 60_000;',
    replace: 'const idMarginMs = 0;',
    test: 'test/gateway/operators/calls/reports/objects.integration.test.ts',
    pattern: 'first and last instant',
  },
  {
    name: 'a report whose caller leaves counts as under way for ever',
    file: 'src/gateway/operators/calls/reports/parts.ts',
    find: 'this.#underWay.delete(person);',
    replace: 'void person;',
    test: 'test/gateway/operators/calls/reports/objects.integration.test.ts',
    pattern: 'lets go of everything',
  },
  {
    name: 'a day of a ledger begins behind entries that are a moment older than those before',
    file: 'src/gateway/operators/calls/reports/ledger-part.ts',
    find: 'const marginMs = 60_000;',
    replace: 'const marginMs = 0;',
    test: 'test/gateway/operators/calls/reports/money.integration.test.ts',
    pattern: 'begins with the first entry after midnight',
  },
  {
    name: 'a report has no trade of an order that was placed before',
    file: 'src/gateway/operators/calls/reports/partner-figures.ts',
    find: '  await addCarriedTrades(database, partnerId, days, trades, signal);\n',
    replace: '',
    test: 'test/gateway/operators/calls/reports/money.integration.test.ts',
    pattern: 'sums of their orders',
  },
];
