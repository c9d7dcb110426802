import { answersQuestion, execIdOf, type Message, namelessId, wholeOf } from '../orders/execution.ts';
import { orderIdOfName } from '../orders/names.ts';
import type { Field } from '../wire/message.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import type { DropCopyTrade } from './table.ts';

export type ReadTrade = Omit<DropCopyTrade, 'id' | 'at' | 'compared'>;

/** ExecType (150) of a trade. 1 and 2 are those of FIX 4.2. */
const tradeTypes = ['F', '1', '2'];
const newTrade = '0';
/** The longest id that the tables keep. */
const longestId = 64;

/**
 * The trades that a message of the drop copy brings: one of an ExecutionReport, one for each side of a TradeCaptureReport. What
 * takes a trade back or changes it brings none.
 */
export function tradesIn(message: Message, toKobo: (text: string) => bigint | undefined): readonly ReadTrade[] {
  const terms = {
    execId: execIdOf(message) ?? namelessId(message),
    quantity: wholeOf(message.get(tags.LastQty)) ?? 0n,
    priceKobo: toKobo(message.get(tags.LastPx) ?? '') ?? 0n,
  };
  if (message.type === messageTypes.ExecutionReport) {
    const isTrade = tradeTypes.includes(message.get(tags.ExecType) ?? '') && !answersQuestion(message);
    return isTrade ? [{ ...terms, ...orderOf((tag) => message.get(tag)) }] : [];
  }
  const isNew = (message.get(tags.TradeReportTransType) ?? newTrade) === newTrade;
  if (message.type !== messageTypes.TradeCaptureReport || !isNew) return [];
  return sidesOf(message).map((side) => ({ ...terms, ...orderOf((tag) => side.find(([each]) => each === tag)?.[1]) }));
}

/** The fields of each side, which Side begins. Where there is no group of sides, the message is one. */
function sidesOf({ fields = [] }: Message): readonly (readonly Field[])[] {
  const group = fields.findIndex(([tag]) => tag === tags.NoSides);
  if (group < 0) return [fields];
  const starts = fields.flatMap(([tag], at) => (tag === tags.Side && at > group ? [at] : []));
  return starts.map((start, nth) => fields.slice(start, starts[nth + 1]));
}

function orderOf(get: (tag: number) => string | undefined) {
  const name = get(tags.ClOrdID) ?? get(tags.OrigClOrdID);
  return { named: kept(name === undefined ? '' : orderIdOfName(name)), exchangeOrderId: kept(get(tags.OrderID) ?? '') };
}

/** A longer id is none of ours. */
function kept(id: string): string {
  return Buffer.byteLength(id) <= longestId ? id : '';
}
