import type { SeededBug } from '../fault/seeded-bugs.ts';

const lost = 'test/gateway/trading/submission/lost-answers.fault.test.ts';
const flows = 'test/gateway/trading/submission/submit.integration.test.ts';

export const sendingBugs: readonly SeededBug[] = [
  {
    name: 'the order is sent before it is stored',
    file: 'src/gateway/trading/submission/submit.ts',
    find: '    const stored = await this.#store(kind, wanted, prepared.draft);\n',
    replace:
      "    await kind.send({ ...('draft' in prepared ? prepared.draft : {}), ...wanted.origin, id: 'ord_0', notAfter: Date.now() + 1_000 } as never, wanted.request, Buffer.alloc(1));\n    const stored = await this.#store(kind, wanted, prepared.draft);\n",
    test: lost,
    pattern: 'is taken and its answer lost',
  },
  {
    name: 'a send without an answer is tried again',
    file: 'src/gateway/trading/broker/grpc-connection.ts',
    find: "return { outcome: 'unclear', evidence: evidenceOf(error) };",
    replace:
      "if (notAfterMs > Date.now() - 500) return this.send(name, request, notAfterMs - 600 + 1_000, about, read);\n      return { outcome: 'unclear', evidence: evidenceOf(error) };",
    test: lost,
    pattern: 'is answered UNAVAILABLE and taken',
  },
  {
    name: 'the reconciler sends what the exchange does not have',
    file: 'src/gateway/trading/submission/reconcile.ts',
    find: '      answered = lookUp;\n',
    replace:
      '      if (!answer.found) await (kind as any).send({ ...row, notAfter: Date.now() + 1_000 }, undefined, Buffer.alloc(1));\n      answered = lookUp;\n',
    test: lost,
    pattern: 'hangs untaken',
  },
  {
    name: 'an unclear outcome is taken for one that never left',
    file: 'src/gateway/trading/broker/grpc-connection.ts',
    find: "return { outcome: 'unclear', evidence: evidenceOf(error) };",
    replace: "return { outcome: 'never-left', evidence: evidenceOf(error) };",
    test: lost,
    pattern: 'meets a reset after it is taken',
  },
  {
    name: 'versions leave gaps',
    file: 'src/gateway/store/partner-transaction.ts',
    find: 'this.#version += BigInt(count);',
    replace: 'this.#version += BigInt(count + (count > 0 ? 1 : 0));',
    test: lost,
    pattern: 'is taken and its answer lost',
  },
  {
    name: 'the feed shows what is behind a gap',
    file: 'src/gateway/delivery/events/feed.ts',
    find: 'if (version !== versionAfter(last, gaps)) return true;',
    replace: 'if (version <= last) return true;',
    test: 'test/gateway/delivery/events/feed.integration.test.ts',
    pattern: 'stops at a gap',
  },
  {
    name: 'an event is not written to the feed with its change',
    file: 'src/gateway/delivery/events/outbox.ts',
    find: 'return [outbox.insert(...rows), copyToFeed(areThese(rows))];',
    replace: 'return [outbox.insert(...rows)];',
    test: lost,
    pattern: 'is taken and its answer lost',
  },
  {
    name: 'a lease is believed without its fence',
    file: 'src/gateway/store/lease.ts',
    find: "statement('SELECT fence FROM leases WHERE name = ? AND fence = ? FOR UPDATE', lease.name, lease.fence)",
    replace: "statement('SELECT fence FROM leases WHERE name = ? FOR UPDATE', lease.name)",
    test: 'test/gateway/store/lease.integration.test.ts',
    pattern: 'a holder that lost its lease',
  },
  {
    name: "a replay repeats the order's state instead of the first answer",
    file: 'src/gateway/trading/submission/submit.ts',
    find: "if (firstAnswer !== 'rejected') return;",
    replace: "if (row.state !== 'rejected') return;",
    test: 'test/gateway/trading/orders/outcomes.integration.test.ts',
    pattern: 'replayed with 200 even after the exchange gave it up',
  },
  {
    name: 'a fill is applied twice',
    file: 'src/gateway/trading/orders/rules.ts',
    find: 'if (report.number <= order.lastReport) return undefined;',
    replace: 'if (report.number < order.lastReport - 1n) return undefined;',
    test: 'test/gateway/trading/orders/rules.unit.test.ts',
    pattern: 'a report seen before changes nothing',
  },
  {
    name: 'the outcome of a send is written over what reports have made of the order',
    file: 'src/gateway/trading/submission/submit.ts',
    find: '(current) =>\n        applySent(kind, current, sent,',
    replace: '() =>\n        applySent(kind, stored, sent,',
    test: lost,
    pattern: 'left a process that was frozen after the send',
  },
  {
    name: 'what is counted against the day is never given back',
    file: 'src/gateway/trading/submission/day-limit.ts',
    find: 'partner.add(usedOf(limit, after), limit.countedKobo(after) - countedBefore);',
    replace: 'if (before === undefined) partner.add(usedOf(limit, after), limit.countedKobo(after));',
    test: lost,
    pattern: 'hangs untaken',
  },
  {
    name: 'the key is looked for before the lock only',
    file: 'src/gateway/trading/submission/submit.ts',
    find: 'if (isUsed) return',
    replace: 'if (isUsed && draft === undefined) return',
    test: flows,
    pattern: 'twenty requests with one key at once',
  },
];
