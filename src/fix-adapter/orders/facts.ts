import { plain } from '../wire/plain.ts';
import { tags } from '../wire/tags.ts';
import type { ExchangeMessage } from './execution.ts';

/** The longest value that a finding keeps of a field. */
const longestValue = 200;

/** The fields that a person needs to judge a message, by their names in FIX. */
const factTags = {
  MsgType: 35,
  ClOrdID: tags.ClOrdID,
  OrigClOrdID: tags.OrigClOrdID,
  OrderID: tags.OrderID,
  ExecID: tags.ExecID,
  ExecRefID: tags.ExecRefID,
  ExecType: tags.ExecType,
  OrdStatus: tags.OrdStatus,
  Symbol: tags.Symbol,
  Side: tags.Side,
  Account: tags.Account,
  OrderQty: tags.OrderQty,
  Price: tags.Price,
  LastQty: tags.LastQty,
  LastPx: tags.LastPx,
  CumQty: tags.CumQty,
  LeavesQty: tags.LeavesQty,
  AvgPx: tags.AvgPx,
  TransactTime: tags.TransactTime,
  OrdRejReason: tags.OrdRejReason,
  CxlRejReason: tags.CxlRejReason,
  RefSeqNum: tags.RefSeqNum,
  RefMsgType: tags.RefMsgType,
  BusinessRejectRefID: tags.BusinessRejectRefID,
  MsgSeqNum: tags.MsgSeqNum,
  SendingTime: tags.SendingTime,
  Text: tags.Text,
};

/** The fields of a message that a line of a log has: none that may be about a person. */
const shown: readonly (keyof typeof factTags)[] = [
  ...(['MsgType', 'ExecType', 'OrdStatus', 'OrderID', 'ExecID', 'ExecRefID', 'OrderQty', 'Price', 'LastQty'] as const),
  ...(['LastPx', 'CumQty', 'LeavesQty', 'AvgPx', 'OrdRejReason', 'CxlRejReason'] as const),
];

/** Makes a value fit to be stored: without what the message log masks. */
export type ShowValue = (tag: number, value: string) => string;

/** All facts of a message, as JSON, for an operator. */
export function factsOf(message: ExchangeMessage, show: ShowValue = (_tag, value) => plain(value)): string {
  const facts = Object.entries(factTags).flatMap(([name, tag]): [string, string][] => {
    const value = message.get(tag);
    return value === undefined ? [] : [[name, show(tag, value).slice(0, longestValue)]];
  });
  return JSON.stringify(Object.fromEntries(facts));
}

/** A message in a line: no account and no free text. */
export function describe(message: ExchangeMessage): string {
  return shown
    .flatMap((name) => {
      const value = message.get(factTags[name]);
      return value === undefined ? [] : [`${name}=${plain(value.slice(0, longestValue))}`];
    })
    .join(' ');
}
