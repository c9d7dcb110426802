import type { SeededBug } from '../fault/seeded-bugs.ts';

const errors = 'test/gateway/store/database-errors.integration.test.ts';
const values = 'test/gateway/store/optimistic-values.integration.test.ts';
const work = 'test/gateway/store/optimistic-work.integration.test.ts';

/** Bugs in how work is decided on what is expected: what is not proven, is believed; what is proven, must be all of it. */
export const optimismBugs: readonly SeededBug[] = [
  {
    name: 'a partner is taken to be as it was',
    file: 'src/gateway/store/database.ts',
    find: '      partnerGuard(state),\n',
    replace: '',
    test: work,
    pattern: 'when another replica worked for the partner',
  },
  {
    name: "a partner's limits are compared as numbers that are not exact",
    file: 'src/gateway/store/partner-transaction.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    find: '`${column} <=> ?`',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    replace: '`${column} * 1e0 <=> ?`',
    test: work,
    pattern: 'when a limit was changed, by however little',
  },
  {
    name: 'what is proven of a day is that no less was used of it',
    file: 'src/gateway/trading/submission/day-limit.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    find: 'COALESCE(${used}, 0) = ?',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    replace: 'COALESCE(${used}, 0) >= ?',
    test: work,
    pattern: 'notices what another replica used',
  },
  {
    name: 'what is proven of a wallet is that it is there',
    file: 'src/gateway/trading/wallet/store.ts',
    find: 'wallets.where(isStored ? stored : { partnerId })',
    replace: 'wallets.where({ partnerId })',
    test: values,
    pattern: 'when another replica changed the wallet alone',
  },
  {
    name: 'what is proven of an order is that it is there',
    file: 'src/gateway/trading/submission/record.ts',
    find: 'table.isRow(expected)',
    replace: 'table.where({ partnerId, id: expected.id } as never)',
    test: work,
    pattern: 'is read again when something came to it',
  },
  {
    name: 'it is not proven that a query finds what it is expected to',
    file: 'src/gateway/store/facts.ts',
    find: 'expected: { value: isExpected, guards: [guard] },',
    replace: 'expected: { value: isExpected, guards: [guard].slice(1) },',
    test: values,
    pattern: 'is saved only if all that the work depends on is as expected',
  },
  {
    name: 'it is not proven that trading goes on',
    file: 'src/gateway/trading/submission/environment.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    find: 'guards: [statement(`(SELECT trading_paused_at IS NULL FROM ${row})`)],',
    replace: 'guards: [],',
    test: values,
    pattern: 'is saved only while trading goes on',
  },
  {
    name: 'several facts are proven by the first of them',
    file: 'src/gateway/store/facts.ts',
    find: 'guards.push(...expected.guards);',
    replace: 'if (guards.length === 0) guards.push(...expected.guards);',
    test: values,
    pattern: 'is saved only if all that the work depends on is as expected',
  },
  {
    name: 'a condition that is neither true nor false counts as true',
    file: 'src/gateway/store/statement.ts',
    find: 'IS NOT TRUE',
    replace: 'IS FALSE',
    test: work,
    pattern: 'when what was expected is gone',
  },
  {
    name: 'the partner is not locked before the conditions are looked at',
    file: 'src/gateway/store/database.ts',
    find: '[lockPartnerAtOnce(partnerId), ...new Set(',
    replace: '[...new Set(',
    test: work,
    pattern: 'waits for the lock that another has',
  },
  {
    name: 'a transaction that cannot be committed fails those of other partners in the same group',
    file: 'src/gateway/store/group-commit.ts',
    find: 'if (isUndone(error)) await',
    replace: 'if (group.length === 0) await',
    test: 'test/gateway/store/group-commit.integration.test.ts',
    pattern: 'is committed for all others when one of them cannot be',
  },
  {
    name: 'transactions that may have been committed are tried again',
    file: 'src/gateway/store/group-commit.ts',
    find: 'return !(error instanceof Refusal) || isUndoneByServer(error.cause ?? error);',
    replace: 'return true;',
    test: 'test/gateway/store/group-commit.unit.test.ts',
    pattern: 'are never tried again when it is not known whether they were committed',
  },
  {
    name: 'what is refused on expected values is not decided again',
    file: 'src/gateway/store/database.ts',
    find: '} catch {\n      return undefined; // The decision under the lock',
    replace: '} catch (error) {\n      throw error; // Whatever',
    test: work,
    pattern: 'when it is refused, and refused then',
  },
  {
    name: 'what is decided again is decided on expected values',
    file: 'src/gateway/store/database.ts',
    find: 'work.decide(work.fact.value(ownRows), partner)',
    replace: 'work.decide(work.fact.expected?.value ?? work.fact.value(ownRows), partner)',
    test: work,
    pattern: 'when what was expected is not so',
  },
  {
    name: 'what was wrong is expected again at once',
    file: 'src/gateway/store/database.ts',
    find: 'this.#cache.noteMiss(partnerId);',
    replace: 'this.#cache.values(partnerId);',
    test: work,
    pattern: 'when another replica worked for the partner',
  },
  {
    name: 'a COMMIT that may have happened is taken for a condition that is not true',
    file: 'src/gateway/store/database.ts',
    find: '      if (!isOptimismWrong((error as Error).cause ?? error)) throw error;\n',
    replace: '',
    test: errors,
    pattern: 'is not tried again in the other way',
  },
  {
    name: 'a statement that is wrong is taken for a condition that is not true',
    file: 'src/gateway/store/errors.ts',
    find: 'return errno === lockedByAnother ||',
    replace: 'return errno > 1_000 ||',
    test: work,
    pattern: 'is not taken for a wrong expectation',
  },
  {
    name: 'what was saved is remembered as it was before',
    file: 'src/gateway/store/partner-transaction.ts',
    find: 'shared.set(name, one.remembered?.(value) ?? value);',
    replace: 'shared.set(name, this.before.shared.get(one.name) ?? value);',
    test: values,
    pattern: 'is remembered as it was saved',
  },
  {
    name: 'work does not see what work before it in the transaction counted',
    file: 'src/gateway/store/partner-transaction.ts',
    find: 'return added === undefined ? value : (((value as bigint) + added.amount) as Value);',
    replace: 'return added === undefined ? value : value;',
    test: 'test/gateway/trading/submission/day-limits.unit.test.ts',
    pattern: 'sees what the work before it used, by day and kind',
  },
  {
    name: 'what refused work did to shared values stays',
    file: 'src/gateway/store/partner-transaction.ts',
    find: '      this.#changed = changed;\n      this.#added = added;\n',
    replace: '',
    test: values,
    pattern: 'is as if work that is refused had never been',
  },
];
