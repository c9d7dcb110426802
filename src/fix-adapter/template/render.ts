import type { Logger } from '../../kit/log.ts';
import { firmRoles, roleOf } from '../messages/masked-tags.ts';
import type { FixOrder } from '../store/table.ts';
import type { Field } from '../wire/message.ts';
import type { Lookups } from './lookups.ts';
import type { LookupKind, OrderFact, OrderTemplate, TemplateField, TemplatePart, TemplateUse } from './parse.ts';
import { impersonalTags } from './tags.ts';

/** The fields of an order that a template needs. */
export type TemplateOrder = Pick<FixOrder, 'account' | 'partner' | 'symbol' | 'side' | 'clOrdId'>;

/** A placeholder has no value for an order. The message has the placeholder, and nothing of the order. */
export class MissingValue extends Error {
  override readonly name = 'MissingValue';

  constructor(readonly placeholder: string) {
    super(`the template's placeholder ${placeholder} has no value for it`);
  }
}

/** Who is notified of a placeholder without a value. */
export interface MissingNotice {
  readonly log: Logger;
  /** Counts it. */
  readonly onMissingValue?: () => void;
}

/**
 * Returns the result of `make`; undefined if a placeholder has no value, which is counted, and which an operator is
 * notified of.
 */
export function filledIn<T>(make: () => T, orderId: string, { log, onMissingValue }: MissingNotice): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof MissingValue)) throw error;
    onMissingValue?.();
    log.error({ orderId, placeholder: error.placeholder }, "the template's placeholder has no value for an order");
    return undefined;
  }
}

const sides = { buy: '1', sell: '2' } as const;

/** Makes the fields of a message about an order. Throws `MissingValue`. */
export type RenderFields = (use: TemplateUse, order: TemplateOrder) => readonly Field[];

/**
 * Makes what fills a template in. `lookups` is read for each message, because the file may change. Throws `MissingValue`: a message
 * is never made without a value.
 */
export function renderer(
  template: OrderTemplate,
  lookups: () => Lookups,
  symbolOf: (symbol: string) => string,
): RenderFields {
  return (use, order) => {
    const fields = template[use];
    if (fields.length === 0) return [];
    const known = lookups();
    return fields.map(
      ({ tag, parts }): Field => [tag, parts.map((part) => partValue(part, order, known, symbolOf)).join('')],
    );
  };
}

function partValue(
  part: TemplatePart,
  order: TemplateOrder,
  lookups: Lookups,
  symbolOf: (symbol: string) => string,
): string {
  if (part.kind === 'text') return part.text;
  if (part.kind === 'fact') {
    const facts: Record<OrderFact, string> = {
      account: order.account,
      partner: order.partner,
      symbol: symbolOf(order.symbol),
      side: sides[order.side],
      order: order.clOrdId,
    };
    return given(facts[part.fact], `{${part.fact}}`);
  }
  const keys: Record<LookupKind, string> = { account: order.account, partner: order.partner, symbol: order.symbol };
  return given(lookups.valueOf(part.by, keys[part.by], part.name), `{${part.by}.${part.name}}`);
}

/** A value that could end its field is none. */
function given(value: string | undefined, placeholder: string): string {
  if (value === undefined || !/^[ -~]+$/.test(value)) throw new MissingValue(placeholder);
  return value;
}

/**
 * The tags that the message log must mask because of a template: their values are looked up by account, so they may be about a
 * person, such as the number of the investor at the clearing house. The id of a party is not among them if its role is no firm's,
 * because the log masks it by that.
 */
export function personalTags(template: OrderTemplate): readonly number[] {
  const found = [template.order, template.cancel, template.status].flatMap((fields) =>
    fields.filter(({ tag, parts }, at) => {
      return isOfAccount(parts) && !impersonalTags.has(tag) && !isMaskedByRole(fields, tag, at);
    }),
  );
  return [...new Set(found.map(({ tag }) => tag))];
}

function isOfAccount(parts: TemplateField['parts']): boolean {
  return parts.some((part) => part.kind === 'lookup' && part.by === 'account');
}

/** Whether the entry of a party has a role that is no firm's. */
function isMaskedByRole(fields: readonly TemplateField[], tag: number, at: number): boolean {
  const roleTag = roleOf.get(tag);
  if (roleTag === undefined) return false;
  const after = fields.slice(at + 1);
  const end = after.findIndex((field) => field.tag === tag);
  const role = after.slice(0, end === -1 ? undefined : end).find((field) => field.tag === roleTag);
  const [part] = role?.parts ?? [];
  if (role === undefined) return true;
  return role.parts.length === 1 && part?.kind === 'text' && !firmRoles.has(part.text);
}
