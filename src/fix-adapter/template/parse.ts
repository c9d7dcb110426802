import { lengthOf } from '../wire/data-fields.ts';
import { checkGroups } from './groups.ts';
import { whyNotInTemplate } from './tags.ts';

/** The messages that have fields of a template. */
export type TemplateUse = 'order' | 'cancel' | 'status';

/** The kinds of keys of a lookup file. */
export type LookupKind = 'account' | 'partner' | 'symbol';

/**
 * A part of a value. A fact is one of the order's own fields; a lookup is the value that the lookup file has under a name for the
 * order's account, partner or symbol.
 */
export type TemplatePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'fact'; readonly fact: OrderFact }
  | { readonly kind: 'lookup'; readonly by: LookupKind; readonly name: string };

export interface TemplateField {
  readonly tag: number;
  readonly parts: readonly TemplatePart[];
}

/** The fields of each message, in the order in which they are sent. */
export type OrderTemplate = Readonly<Record<TemplateUse, readonly TemplateField[]>>;

/** The values of the order itself that a placeholder can name. */
const orderFacts = ['account', 'partner', 'symbol', 'side', 'order'] as const;
export type OrderFact = (typeof orderFacts)[number];

const uses = ['order', 'cancel', 'status'] as const;
const lookupKinds: readonly string[] = ['account', 'partner', 'symbol'] satisfies LookupKind[];
const lengthTags: ReadonlySet<number> = new Set([...lengthOf].flat());

/** More fields than any broker asks for. */
const maxFields = 100;

export const noTemplate: OrderTemplate = { order: [], cancel: [], status: [] };

/**
 * Reads a template. Each line is `TAG=VALUE`; a value may have placeholders such as `{account}` or `{account.cscs}`. A line such as
 * `[order cancel]` says which messages have the fields below it; those above the first are of all. Throws what is wrong, with the
 * number of the line.
 */
export function parseTemplate(text: string): OrderTemplate {
  const fields: Record<TemplateUse, TemplateField[]> = { order: [], cancel: [], status: [] };
  let current: readonly TemplateUse[] = uses;
  for (const [at, raw] of text.split('\n').entries()) {
    const line = raw.replace(/\r$/, '').trimStart();
    if (line === '' || line.startsWith('#')) continue;
    atLine(at + 1, () => {
      if (line.startsWith('[')) current = usesOf(line.trimEnd());
      else {
        const field = parseField(line);
        for (const use of current) fields[use].push(field);
      }
    });
  }
  checkTemplate(fields);
  return fields;
}

/** Reads fields that all three messages have, as `TAG=VALUE` with `|` between them. */
export function parseFieldList(text: string): OrderTemplate {
  if (text === '') return noTemplate;
  const fields = text.split('|').map(parseField);
  checkTemplate({ order: fields, cancel: fields, status: fields });
  return { order: fields, cancel: fields, status: fields };
}

function atLine<T>(line: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Error(`line ${line} ${(error as Error).message}`);
  }
}

function usesOf(line: string): readonly TemplateUse[] {
  const words = /^\[([a-z ]+)\]$/.exec(line)?.[1]?.trim().split(/ +/) ?? [];
  const found = uses.filter((use) => words.includes(use));
  if (found.length === 0 || found.length !== words.length) {
    throw new Error('must name messages once each, such as [order] or [order cancel status]');
  }
  return found;
}

function parseField(text: string): TemplateField {
  const [, tag = '', value = ''] = /^([1-9]\d{0,4})=([ -~]+)$/.exec(text) ?? [];
  if (tag === '') throw new Error('must be tag=value in printable ASCII');
  const why = whyNotInTemplate(Number(tag), lengthTags);
  if (why !== undefined) throw new Error(why);
  return { tag: Number(tag), parts: partsOf(value) };
}

function partsOf(value: string): TemplatePart[] {
  return value
    .split(/(\{[^{}]*\})/)
    .filter((part) => part !== '')
    .map((part) => {
      const inside = /^\{(.*)\}$/.exec(part)?.[1];
      if (inside !== undefined) return placeholder(inside);
      if (/[{}]/.test(part)) throw new Error('must have { and } only around a placeholder');
      return { kind: 'text', text: part };
    });
}

function placeholder(inside: string): TemplatePart {
  const fact = orderFacts.find((each) => each === inside);
  if (fact !== undefined) return { kind: 'fact', fact };
  const [, by = '', name = ''] = /^([a-z]+)\.([a-z][a-z0-9_]{0,31})$/.exec(inside) ?? [];
  if (!lookupKinds.includes(by)) throw new Error(`must not have the placeholder {${inside}}, which is not known`);
  return { kind: 'lookup', by: by as LookupKind, name };
}

function checkTemplate(template: OrderTemplate): void {
  for (const use of uses) {
    if (template[use].length > maxFields) throw new Error(`must have at most ${maxFields} fields in a message`);
    try {
      checkGroups(template[use].map(({ tag, parts }) => ({ tag, count: countOf(parts) })));
    } catch (error) {
      throw new Error(`${(error as Error).message} (in [${use}])`);
    }
  }
}

function countOf(parts: readonly TemplatePart[]): number | undefined {
  const [part] = parts;
  const text = parts.length === 1 && part?.kind === 'text' ? part.text : '';
  return /^[1-9]\d?$/.test(text) ? Number(text) : undefined;
}

/** Every value that the template looks up, each once. */
export function lookupsOf(template: OrderTemplate): { readonly by: LookupKind; readonly name: string }[] {
  const parts = uses.flatMap((use) => template[use]).flatMap((field) => field.parts);
  const found = new Map(
    parts.flatMap((part) => (part.kind === 'lookup' ? [[`${part.by}.${part.name}`, part] as const] : [])),
  );
  return [...found.values()].map(({ by, name }) => ({ by, name }));
}
