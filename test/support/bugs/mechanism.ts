import type { SeededBug } from '../fault/seeded-bugs.ts';

const allocations = 'test/gateway/trading/allocations/allocations.integration.test.ts';
const corrections = 'test/gateway/trading/wallet/corrections.integration.test.ts';
const flows = 'test/gateway/trading/submission/submit.integration.test.ts';
const otherVersion = 'test/gateway/app/other-version-orders.integration.test.ts';
const reconciler = 'test/gateway/trading/submission/reconciler.integration.test.ts';
const restored = 'test/gateway/trading/submission/recovery.integration.test.ts';
const sent = 'test/gateway/trading/submission/sent-changes.unit.test.ts';
const work = 'test/gateway/store/optimistic-work.integration.test.ts';

/** Bugs in what orders, applications and allocations share: each would be one of all three. */
export const mechanismBugs: readonly SeededBug[] = [
  {
    name: 'of several changes that come together only the last makes an event',
    file: 'src/gateway/trading/submission/change.ts',
    find: 'this.events.push(this.after);',
    replace: 'this.events.splice(0, 1, this.after);',
    test: reconciler,
    pattern: 'that the record has is settled with all its reports',
  },
  {
    name: 'what is settled is looked at all the same',
    file: 'src/gateway/trading/submission/change.ts',
    find: 'if (isUnsettled(row.state)) return row;',
    replace: "if (row.state !== '') return row;",
    test: sent,
    pattern: 'is the first answer to its partner',
  },
  {
    name: 'an order in a state that this version does not know is changed',
    file: 'src/gateway/trading/submission/record.ts',
    find: 'kind.table.isKnown(row) ? decide(row, extra) : decideUnknown?.(row, extra)',
    replace: 'decide(row, extra)',
    test: otherVersion,
    pattern: 'misses no trade: reports pass it over',
  },
  {
    name: 'reports are applied before those that were passed over',
    file: 'src/gateway/trading/submission/report-applier.ts',
    find: 'if (isBehind(row)) return this.#lookUpLater(row, own);',
    replace: 'if (isBehind(row) && row.id === undefined) return this.#lookUpLater(row, own);',
    test: otherVersion,
    pattern: 'in the order of the numbers',
  },
  {
    name: 'an object that is restored takes nothing of its partner',
    file: 'src/gateway/trading/submission/submit.ts',
    find: '  count(kind.dayLimit, undefined, row, partner);',
    replace: "  if (row.state === 'sending') count(kind.dayLimit, undefined, row, partner);",
    test: restored,
    pattern: 'and counts it for its day',
  },
  {
    name: 'a note leaves out what the partner calls the order',
    file: 'src/gateway/trading/orders/table.ts',
    find: "'priceKobo', 'clientReference'] as const",
    replace: "'priceKobo'] as const",
    test: 'test/gateway/trading/submission/notes.unit.test.ts',
    pattern: 'hold what restores the object',
  },
  {
    name: 'what an allocation reserved is not given back',
    file: 'src/gateway/trading/allocations/kind.ts',
    find: 'if (settlement !== undefined) this.#transfer',
    replace: "if (settlement === 'post') this.#transfer",
    test: allocations,
    pattern: 'money that was given back can be used again',
  },
  {
    name: 'reversals of one credit share a transaction and do not see each other',
    file: 'src/gateway/operators/calls/wallet-corrections.ts',
    find: 'touches: touchedByPayments,',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    replace: 'touches: `bank reference ${bankReference}`,',
    test: corrections,
    pattern: 'when many reverse it at once',
  },
  {
    name: 'earlier reversals of a credit are forgotten',
    file: 'src/gateway/operators/calls/wallet-corrections.ts',
    find: 'credit.entry.amountKobo - credit.reversedKobo',
    replace: 'credit.entry.amountKobo',
    test: corrections,
    pattern: 'whole or in parts',
  },
  {
    name: "another partner's credit is reversed",
    file: 'src/gateway/operators/calls/wallet-corrections.ts',
    find: 'credit.entry.partnerId !== partnerId || ',
    replace: '',
    test: corrections,
    pattern: 'takes nothing, and says why',
  },
  {
    name: 'the audit is not asked which credit a reversal took back',
    file: 'src/gateway/operators/calls/credit-audit.ts',
    find: "bankReference, String(reverses ?? '')]",
    replace: 'bankReference]',
    test: corrections,
    pattern: 'reverses another credit than the audit says',
  },
  {
    name: 'more is reversed of a credit than there was, and no check finds it',
    file: 'src/gateway/operators/calls/credit-reversals.ts',
    find: 'if (reversedKobo <= credit.amountKobo) return',
    replace: 'if (reversedKobo >= 0n) return',
    test: corrections,
    pattern: 'of which more is reversed than there was',
  },
  {
    name: 'a withdrawal to a bank account is credited to the wallet',
    file: 'src/gateway/trading/withdrawals/rules.ts',
    find: "return after.destination === 'wallet' && before.state",
    replace: 'return before.state',
    test: 'test/gateway/trading/withdrawals/withdrawals.integration.test.ts',
    pattern: 'and enters nothing into the wallet',
  },
  {
    name: 'a report changes a withdrawal that an operator settled',
    file: 'src/gateway/trading/withdrawals/settlement/rules.ts',
    find: 'if (isAsOthers || applied',
    replace: 'if (true || applied',
    test: 'test/gateway/trading/withdrawals/settlement.unit.test.ts',
    pattern: 'a report PAID of one that was settled as rejected contradicts it',
  },
  {
    name: 'an object that the broker may still take is settled as never taken',
    file: 'src/gateway/operators/calls/settlements/service.ts',
    find: 'if (isAbsent && mayStillBeTaken(',
    replace: 'if (isAbsent && !mayStillBeTaken(',
    test: 'test/gateway/operators/calls/settlements/claims.integration.test.ts',
    pattern: 'is not settled as never taken while the broker may still take it',
  },
  {
    name: 'one operator credits a large payment in small ones',
    file: 'src/gateway/operators/calls/wallets.ts',
    find: 'isAbove(aloneKobo + amountKobo, fourEyesAboveKobo)',
    replace: 'isAbove(amountKobo, fourEyesAboveKobo)',
    test: 'test/gateway/operators/calls/proposals/credits.integration.test.ts',
    pattern: 'small payments of a day add up',
  },
  {
    name: 'a withdrawal is released for a partner that has lost its account',
    file: 'src/gateway/operators/calls/releases/service.ts',
    find: 'if (!isLinked)',
    replace: 'if (isLinked === undefined)',
    test: 'test/gateway/operators/calls/releases/releases.integration.test.ts',
    pattern: 'is not sent once the partner has lost the account',
  },
  {
    name: 'one operator links an account alone',
    file: 'src/gateway/operators/calls/accounts.ts',
    find: 'needsSecond: true,',
    replace: 'needsSecond: false,',
    test: 'test/gateway/operators/calls/proposals/rights.integration.test.ts',
    pattern: 'is linked by two',
  },
  {
    name: 'a payment of the broker settles two withdrawals',
    file: 'src/gateway/operators/calls/settlements/outcomes.ts',
    find: "if (other !== undefined && word === 'completed') {",
    replace: "if (other !== undefined && word === 'completed' && settlement.brokerReference !== undefined) {",
    test: 'test/gateway/operators/calls/settlements/claims.integration.test.ts',
    pattern: 'settles one withdrawal, whether or not the settlement names its reference',
  },
  {
    name: 'a field that has no value any more keeps the one it had',
    file: 'src/gateway/store/table.ts',
    find: 'if (before[field] === after[field]) continue;',
    replace: 'if (before[field] === after[field] || after[field] === null) continue;',
    test: work,
    pattern: 'has its checkAt saved',
  },
  {
    name: 'a page begins with the last object of the one before it',
    file: 'src/gateway/trading/submission/list.ts',
    find: 'AND id < ',
    replace: 'AND id <= ',
    test: flows,
    pattern: 'a list is newest first, pages to its end',
  },
];
