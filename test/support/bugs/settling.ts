import type { SeededBug } from '../fault/seeded-bugs.ts';

const events = 'test/gateway/delivery/events/feed.integration.test.ts';
const flows = 'test/gateway/trading/submission/submit.integration.test.ts';
const reconciler = 'test/gateway/trading/submission/reconciler.integration.test.ts';
const reports = 'test/gateway/trading/submission/report-consumer.integration.test.ts';
const cancels = 'test/gateway/trading/orders/cancels.integration.test.ts';
const errors = 'test/gateway/store/database-errors.integration.test.ts';
const releases = 'test/gateway/trading/applications/document-release.integration.test.ts';
const files = 'test/gateway/edge/files.unit.test.ts';

/** Bugs at the second time, by the look-up instead of the stream, or just inside a bound. Each lived once. */
export const settlingBugs: readonly SeededBug[] = [
  {
    name: 'only the first removal of old events is noted',
    file: 'src/gateway/delivery/events/retention.ts',
    find: 'ON DUPLICATE KEY UPDATE purged_version = GREATEST(purged_version, VALUES(purged_version))',
    replace: 'ON DUPLICATE KEY UPDATE purged_version = purged_version',
    test: events,
    pattern: 'holds 30 days',
  },
  {
    name: 'market orders are never similar',
    file: 'src/gateway/store/table.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    find: 'wanted === null ? `${columnName(field)} IS NULL`',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
    replace: 'wanted === null ? `${columnName(field)} = NULL`',
    test: flows,
    pattern: 'a market order like one whose fate is unknown',
  },
  {
    name: 'absence is proven by when the record answered',
    file: 'src/gateway/trading/submission/reconcile.ts',
    find: '      const askedAt = clock.realNow();\n      const answer = await kind.lookUp(row);',
    replace: '      const answer = await kind.lookUp(row);\n      const askedAt = clock.realNow();',
    test: reconciler,
    pattern: 'by when the record was asked',
  },
  {
    name: 'an order is refused at the first look-up that does not find it',
    file: 'src/gateway/trading/submission/reconcile.ts',
    find: 'missingSince !== null && isProven(absence)',
    replace: 'isProven(absence)',
    test: reconciler,
    pattern: 'is no refusal when the record does not have the order',
  },
  {
    name: 'a broker without a fence takes nothing late',
    file: 'src/gateway/trading/submission/reconcile.ts',
    find: 'sentFrom(row) + behindMs + lateMs',
    replace: 'sentFrom(row) + behindMs',
    test: reconciler,
    pattern: 'complete for an hour after the order was made',
  },
  {
    name: 'files take no place',
    file: 'src/gateway/edge/pipeline.ts',
    find: '    if (operation.file !== undefined) context.hold(limits.takeFile(caller));\n',
    replace: '',
    test: files,
    pattern: 'takes a slot among the files',
  },
  {
    name: 'an error during COMMIT is taken for a rollback',
    file: 'src/gateway/store/errors.ts',
    find: 'errno === errorDuringCommit ||',
    replace: '',
    test: errors,
    pattern: 'an error during COMMIT',
  },
  {
    name: 'an account that a look-up tells is not compared with those of other partners',
    file: 'src/gateway/trading/applications/kind.ts',
    find: 'looked.found ? { ...looked, answer: await this.#vet(looked.answer) } : looked',
    replace: 'looked',
    test: reconciler,
    pattern: 'when a look-up tells of it',
  },
  {
    name: 'a lost order is not looked for before its report is passed over',
    file: 'src/gateway/trading/submission/report-session.ts',
    find: '    await findLost();\n',
    replace: '',
    test: reports,
    pattern: 'about an order that the database lost',
  },
  {
    name: 'a cancel is clear though the record could not be read',
    file: 'src/gateway/trading/orders/cancel.ts',
    find: "return { outcome: 'unclear', evidence: \"the exchange answered, and the order's record could not be read\" };",
    replace: 'return { outcome: answer.outcome, reports: [] };',
    test: cancels,
    pattern: 'came too late stays unconfirmed',
  },
  {
    name: 'a look-up ends a newer cancel',
    file: 'src/gateway/trading/orders/cancel.ts',
    find: 'if (order.cancelUntil !== before.cancelUntil) return undefined;',
    replace: '',
    test: cancels,
    pattern: 'does not end a newer one',
  },
  {
    name: 'the late end of a cancel ends a newer one',
    file: 'src/gateway/trading/orders/cancel.ts',
    find: 'const isLatest = order.cancelUntil === sent.cancelUntil;',
    replace: 'const isLatest = order.cancelUntil !== null;',
    test: cancels,
    pattern: 'that ends late leaves a newer one',
  },
  {
    name: 'a document is released before a late one can have come',
    file: 'src/gateway/trading/applications/documents/sender.ts',
    find: '+ aheadMs + lateMs;',
    replace: '+ aheadMs;',
    test: releases,
    pattern: 'until the record is complete for an hour',
  },
  {
    name: 'the times of reports that a look-up brings are no evidence',
    file: 'src/gateway/trading/submission/record.ts',
    find: 'if (reportedAfterMs !== undefined) clocks.reported(reportedAfterMs, sentFrom(after) - clock.now());',
    replace: 'void clocks;',
    test: reconciler,
    pattern: 'that the record has is settled with all its reports',
  },
];
