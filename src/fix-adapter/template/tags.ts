/** The tags that a template of fields may and may not have. */

/** The standard header and trailer, which the session writes. */
const headerTags: ReadonlySet<number> = new Set([
  ...[8, 9, 10, 34, 35, 43, 49, 50, 52, 56, 57, 89, 90, 91, 93, 97, 115, 116, 122, 128, 129, 142, 143, 144, 145],
  ...[212, 213, 347, 369, 627, 628, 629, 630, 1128, 1129, 1156],
]);

/** Fields of the order, which the adapter writes itself. */
const ownTags: ReadonlySet<number> = new Set([1, 11, 21, 37, 38, 40, 41, 44, 54, 55, 59, 60, 584, 585, 790]);

/** Fields that would make another order of it: StopPx, ExpireTime, CashOrderQty, ExpireDate. */
const termTags: ReadonlySet<number> = new Set([99, 126, 152, 432]);

/** A repeating group: the first field of each entry, and the others in the order in which they follow. */
interface Group {
  readonly name: string;
  /** All fields of an entry. The first one begins it, and must be there. */
  readonly members: readonly number[];
}

/** The repeating groups that a template can have, by the tag of their count. A group inside another is among its members. */
export const groups: ReadonlyMap<number, Group> = new Map([
  [78, { name: 'NoAllocs', members: [79, 661, 736, 467, 539, 80] }],
  [232, { name: 'NoStipulations', members: [233, 234] }],
  [386, { name: 'NoTradingSessions', members: [336, 625] }],
  [453, { name: 'NoPartyIDs', members: [448, 447, 452, 802] }],
  [454, { name: 'NoSecurityAltID', members: [455, 456] }],
  [539, { name: 'NoNestedPartyIDs', members: [524, 525, 538, 804] }],
  [802, { name: 'NoPartySubIDs', members: [523, 803] }],
  [804, { name: 'NoNestedPartySubIDs', members: [545, 805] }],
]);

/** Why a template cannot have a tag. Undefined: it can. `lengthTags` are those of fields of bytes and of their lengths. */
export function whyNotInTemplate(tag: number, lengthTags: ReadonlySet<number>): string | undefined {
  if (headerTags.has(tag)) return `must not have tag ${tag}, which is one of the header or trailer`;
  if (ownTags.has(tag)) return `must not have tag ${tag}, which the adapter writes itself`;
  if (termTags.has(tag)) return `must not have tag ${tag}, which would make another order of it`;
  if (lengthTags.has(tag)) return `must not have tag ${tag}, which is a field of bytes or its length`;
  return undefined;
}

/**
 * Fields that say nothing about a person, so that the message log shows them also if their value is looked up: SettlType 63,
 * TradingSessionID 336, PartyIDSource 447, PartyRole 452, OrderCapacity 528, OrderRestrictions 529, AccountType 581,
 * TradingSessionSubID 625, AcctIDSource 660.
 */
export const impersonalTags: ReadonlySet<number> = new Set([63, 336, 447, 452, 528, 529, 581, 625, 660]);
