import { defineTable, text } from '../../store/table.ts';

/** What `archive write` keeps in the database; the gateway does not use it. */
export const archiveState = defineTable({
  name: 'archive_state',
  columns: { name: text(40), value: text(64) },
  primary: ['name'],
});
