import type { SeededBug } from '../fault/seeded-bugs.ts';

const orders = 'test/gateway/trading/orders/moments.fault.test.ts';
const cancel = 'src/gateway/trading/orders/cancel.ts';
const secretKeys = 'test/gateway/operators/secret-keys/moments.fault.test.ts';
const restoring = 'test/gateway/app/moments.fault.test.ts';
const retention = 'test/gateway/store/retention-moments.fault.test.ts';
const archived = 'test/gateway/operators/archive/moments.fault.test.ts';
const proposed = 'test/gateway/operators/calls/proposals/moments.fault.test.ts';
const archive = 'src/gateway/operators/archive/archive.ts';
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
  {
    name: 'a run of keys reseal leaves what is behind a secret that another run has sealed',
    file: 'src/gateway/operators/secret-keys/reseal.ts',
    find: 'else if (sealed.opened.keyId === ring[0].id) counts.current += 1;',
    replace: 'else if (sealed.opened.keyId === ring[0].id) return;',
    test: secretKeys,
    pattern: 'commit update webhook_endpoints \\(2\\), killed right before it',
  },
  {
    name: 'a run of keys reseal ends with 0 although a wallet could not be sealed again',
    file: 'src/gateway/operators/secret-keys/sealed-keys.ts',
    find: '      const outcome = await resealRow(row);',
    replace: "      const outcome = await resealRow(row).catch(() => 'changed' as const);",
    test: secretKeys,
    pattern: 'commit update wallets, refused: every',
  },
  {
    name: 'a changed file of secrets that was refused once is never tried again',
    file: 'src/kit/watched-files.ts',
    find: 'return this.#refusal?.digest === digest && performance.now() < this.#refusal.againAt;',
    replace: 'return this.#refusal?.digest === digest;',
    test: secretKeys,
    pattern: 'commit insert secret_keys, refused: every',
  },
  {
    name: 'new objects are accepted although one that was lost could not be stored again',
    file: 'src/gateway/trading/submission/recovery.ts',
    find: '        if (tries % 20 === 0) {',
    replace: '        gate.open();\n        if (tries % 20 === 0) {',
    test: restoring,
    pattern: 'commit insert orders, insert order_steps, insert usage_days, refused twice in a row',
  },
  {
    name: 'a restore counts as declared before its versions are left out',
    file: 'src/gateway/trading/submission/restored.ts',
    find: `  await leaveVersionGaps(database);
  await database.write(savePosition(restoredPosition(broker), position));
`,
    replace: `  await database.write(savePosition(restoredPosition(broker), position));
  await leaveVersionGaps(database);
`,
    test: restoring,
    pattern: 'commit insert feed_skips, update partners, killed right before it: every promise holds$',
  },
  {
    name: 'a migration fails on a column that a killed run has added',
    file: 'src/gateway/store/migrate.ts',
    find: 'const isDone = new Set([1050, 1060, 1061, 1091]);',
    replace: 'const isDone = new Set([1050, 1061, 1091]);',
    test: 'test/gateway/store/moments.fault.test.ts',
    pattern: 'EndpointRevisions1763694100000',
  },
  {
    name: 'a request to cancel whose process was killed before it was written blocks every later one',
    file: 'src/fix-adapter/orders/cancels.ts',
    find: 'return writtenForMs.some((ms) => ms < cancelTimeoutMs);',
    replace: 'return writtenForMs.length > 0 || cancelTimeoutMs < 0;',
    test: 'test/fix-adapter/moments.fix.test.ts',
    pattern: 'commit update fix_numbers, insert fix_cancels, killed right after it',
  },
  {
    name: 'a job is removed before its orders',
    file: 'src/gateway/trading/orders/bulk-cancels/retention.ts',
    find: '    const removed = await database.write(',
    replace:
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
      '    await database.write(sql`DELETE FROM bulk_cancels WHERE id = ${id}`);\n    const removed = await database.write(',
    test: retention,
    pattern: 'commit delete bulk_cancels, killed right after it',
  },
  {
    name: 'events leave the feed before it is noted that they do',
    file: 'src/gateway/delivery/events/retention.ts',
    find: '    return { writes: [note, remove], result: undefined };',
    replace:
      '    void database.write(remove).then(() => database.write(note));\n    return { writes: [], result: undefined };',
    test: retention,
    pattern: 'delete feed_events, killed right after it',
  },
  {
    name: 'an approval whose answer was lost cannot be repeated',
    file: 'src/gateway/operators/calls/proposals/service.ts',
    find: "if (row.state === 'applied') return false;",
    replace: '',
    test: proposed,
    pattern: 'insert wallet_transfers, insert wallets, killed right after it',
  },
  {
    name: 'a month of the archive counts as done with before its steps have left the database',
    file: archive,
    find: '  const removed = await removeArchived(run, path, period, manifest);\n',
    replace:
      "  await writeText(join(path, removedFile), '');\n  const removed = await removeArchived(run, path, period, manifest);\n  if (removed >= 0) return;\n",
    test: archived,
    pattern: 'commit delete object_steps, killed right before it',
  },
  {
    name: 'a run of the archive ends with 0 although a month could not be written',
    file: archive,
    find: 'if (failures.length > 0) throw',
    replace: 'if (failures.length > 99) throw',
    test: archived,
    pattern: 'file rename month, refused: every',
  },
];
