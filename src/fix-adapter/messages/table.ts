import { defineTable, exactText, instant, longText, type RowOf, text, whole } from '../../gateway/store/table.ts';
import type { MessageOutcome } from './tap.ts';

/** Which session a message is of: that of orders, or that of the drop copy. */
export type MessageSession = 'order' | 'drop_copy';

/**
 * The messages of both sessions, masked. `id` has the fence of the lease's holder in its upper bits, and counts that holder's
 * messages below: so a batch that is written again changes nothing. `position` counts the characters kept so far.
 */
export const fixMessages = defineTable({
  name: 'fix_messages',
  columns: {
    id: whole(),
    session: text<MessageSession>(9),
    at: instant(),
    startedAt: instant(),
    direction: text<'in' | 'out'>(3),
    number: whole(),
    type: text(8),
    orderId: exactText(64),
    clOrdId: exactText(70),
    outcome: text<MessageOutcome>(12),
    position: whole(),
    text: longText(),
  },
  primary: ['id'],
  indexes: {
    fix_messages_at: ['at'],
    fix_messages_session: ['session', 'id'],
    fix_messages_order: ['orderId', 'id'],
    fix_messages_cl_ord_id: ['clOrdId', 'id'],
    fix_messages_number: ['number', 'id'],
    fix_messages_type: ['type', 'direction', 'id'],
  },
});

export type StoredMessage = RowOf<typeof fixMessages>;

/** How many messages one holder of the lease can log: 2^36, which is 2,000 a second for a year. */
const messagesOfHolder = 1n << 36n;

/** The id of a holder's nth message. */
export function messageId(fence: bigint, nth: bigint): bigint {
  return fence * messagesOfHolder + nth;
}
