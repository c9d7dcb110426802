import { defineTable, instant, type RowOf, shortened, text, whole } from '../../gateway/store/table.ts';

/** The operators' wish for the session. */
export type Wish = 'on' | 'out';

/**
 * The wish of operators and the state of the session. One row. `request` counts what operators asked for. The process that has
 * the session writes the rest: `fence` of its lease, `obeyed` is the last request that it has carried out.
 */
export const fixSession = defineTable({
  name: 'fix_session',
  columns: {
    id: whole(),
    wish: text<Wish>(3),
    request: whole(),
    fence: whole(),
    obeyed: whole(),
    state: text(16),
    since: instant(),
    reason: shortened(500),
  },
  primary: ['id'],
});

export type SessionRow = RowOf<typeof fixSession>;

/** The operators' actions. Entries are never changed. */
export const fixAudit = defineTable({
  name: 'fix_audit',
  columns: {
    id: whole(),
    at: instant(),
    operator: text(64),
    action: text(64),
    reason: text(200),
    was: shortened(500),
    became: shortened(500),
  },
  primary: ['id'],
  generated: 'id',
});

export type AuditRow = RowOf<typeof fixAudit>;
