import type { SeededBug } from '../fault/seeded-bugs.ts';

const authentication = 'test/gateway/edge/auth/authentication.integration.test.ts';
const documents = 'test/gateway/trading/applications/documents.integration.test.ts';
const records = 'test/gateway/trading/broker/records.unit.test.ts';
const restored = 'test/gateway/trading/submission/recovery.integration.test.ts';
const wallet = 'test/gateway/trading/wallet/rules.unit.test.ts';

/** Bugs just inside a bound, at the second time, or in the smallest case: each lived once, for all the tests there were. */
export const edgeBugs: readonly SeededBug[] = [
  {
    name: 'a cursor one behind what was removed is not refused',
    file: 'src/gateway/delivery/events/handlers.ts',
    find: 'if (after !== undefined && after < purgedVersion) {',
    replace: 'if (after !== undefined && after + 1n < purgedVersion) {',
    test: 'test/gateway/delivery/events/feed.integration.test.ts',
    pattern: 'holds 30 days',
  },
  {
    name: 'uploads of several applications do not see each other begin',
    file: 'src/gateway/trading/applications/documents/sender.ts',
    find: "        // Otherwise two documents of a partner would not count each other.\n        touches: ['documents under way'],",
    replace: '        touches: [],',
    test: documents,
    pattern: 'though four applications ask in the same moment',
  },
  {
    name: 'a document counts as under way for less than its send may take',
    file: 'src/gateway/trading/applications/documents/sender.ts',
    find: 'const leaseMs = submitTimeoutMs + clockSkewMs + leaseMarginMs;',
    replace: 'const leaseMs = submitTimeoutMs / 2 + clockSkewMs;',
    test: documents,
    pattern: 'counts as under way for as long as its send may take',
  },
  {
    name: 'the slots of a read whose time ran out stay in use',
    file: 'src/gateway/trading/broker/read-queue.ts',
    find: '        ofPartner.release();\n        ofAll.release();\n        continue;',
    replace: '        continue;',
    test: 'test/gateway/trading/broker/read-queue.unit.test.ts',
    pattern: 'that ran out of time while their slots were asked for',
  },
  {
    name: 'a short page that says more follows is believed',
    file: 'src/gateway/trading/broker/records.ts',
    find: 'length <= limit && (!hasMore || length === limit)',
    replace: 'length <= limit && (!hasMore || length > 0)',
    test: records,
    pattern: 'is not believed when it is short',
  },
  {
    name: 'a page that repeats the last record of the one before it is believed',
    file: 'src/gateway/trading/broker/records.ts',
    find: 'one === before && id < beforeId',
    replace: 'one === before && id <= beforeId',
    test: records,
    pattern: 'is not believed when it repeats the last record',
  },
  {
    name: 'what is posted is not compared',
    file: 'src/gateway/trading/wallet/rules.ts',
    find: 'one.reservedKobo === other.reservedKobo &&\n    one.postedKobo === other.postedKobo',
    replace: 'one.reservedKobo === other.reservedKobo',
    test: wallet,
    pattern: 'any of the three sums',
  },
  {
    name: 'a debit takes nothing from what is available',
    file: 'src/gateway/trading/wallet/rules.ts',
    find: 'debit: { availableKobo: -1n,',
    replace: 'debit: { availableKobo: 0n,',
    test: wallet,
    pattern: 'takes debits and reversals from what is available',
  },
  {
    name: 'the hash of a reversal is made of a name that an older version does not read',
    file: 'src/gateway/trading/wallet/rules.ts',
    find: '    storedType(entry.type),',
    replace: '    entry.type,',
    test: wallet,
    pattern: 'makes the hash of a reversal of its stored type',
  },
  {
    name: 'a restore that lost one submission is taken for none',
    file: 'src/gateway/trading/submission/recovery.ts',
    find: 'if (ours.length > 0 && !gate.isOpen)',
    replace: 'if (ours.length > 1 && !gate.isOpen)',
    test: restored,
    pattern: 'lost exactly one submission',
  },
  {
    name: 'an orderly stop does not wait for attempts',
    file: 'src/gateway/delivery/webhooks/dispatcher.ts',
    find: 'while (this.#attempts.underWay > 0 && performance.now() < end) await pause(20, stopped.signal);',
    replace: 'void end;',
    test: 'test/gateway/delivery/webhooks/stop.integration.test.ts',
    pattern: 'waits for its answer and records it',
  },
  {
    name: 'what is being read of a key is kept though the key was forgotten',
    file: 'src/gateway/edge/auth/authenticate.ts',
    find: '    this.#absent.delete(keyId);\n    this.#asking.delete(keyId);\n  }\n\n  /** Drops all',
    replace: '    this.#absent.delete(keyId);\n  }\n\n  /** Drops all',
    test: authentication,
    pattern: 'a key is forgotten with what is being read of it',
  },
  {
    name: "what is being read of a partner's keys is kept though they were forgotten",
    file: 'src/gateway/edge/auth/authenticate.ts',
    find: 'this.#asking.clear();',
    replace: '',
    test: authentication,
    pattern: "a partner's keys is forgotten with what is being read of it",
  },
];
