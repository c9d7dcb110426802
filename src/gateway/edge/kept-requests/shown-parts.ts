import { type DescField, type DescMessage, getOption, ScalarType } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { field as fieldOption } from '../../../gen/marina/options/v1/options_pb.ts';
import { enumNames } from '../../../kit/enums.ts';
import { JsonNumber, JsonObject, type JsonTree, MalformedJson, readJson } from '../json/reader.ts';
import { leftOut, longestNumber } from '../personal-text.ts';
import { withoutSecrets } from './shown-secrets.ts';

/**
 * What may be shown of a request. A value is shown if it has a form that describes nobody: what is not known to be harmless is
 * left out. Forms are those of the fields in the proto, so a new field needs no rule here.
 */

/** The numbers of a request that are left out, so that its answer does not show them either. */
export type LeftOutNumbers = Set<string>;

/** Names as our own fields, parameters and paths have them. Names of people have capitals, blanks or digits. */
const nameForm = /^[a-z]{1,30}(?:[_-][a-z]{1,30}|[A-Z][a-z]{0,29}){0,7}$/;
const headerName = 'Idempotency-Key';
const rpcService = /^marina\.gateway\.v1\.[A-Z][A-Za-z]{1,30}$/;

/** A name that the client chose, such as that of a member or of a parameter. */
export function shownName(name: string): string {
  if (nameForm.test(name) || name === headerName) return name;
  return shownSecret(name);
}

/** A field's path, as in `fees[0].amount`. */
export function shownFieldPath(path: string): string {
  return path
    .split(/(\.|\[\d{1,5}\])/)
    .map((part) => (part === '' || part === '.' || /^\[\d+\]$/.test(part) ? part : shownName(part)))
    .join('');
}

/** A segment of a path that is no operation's. */
export function shownSegment(segment: string): string {
  return segment === '' || segment === 'v1' || rpcService.test(segment) ? segment : shownName(segment);
}

/** A text that may have been written for a field, decoded; without a field it is nobody's. */
export function shownText(field: DescField | undefined, text: string): string {
  return field !== undefined && isHarmless(field, text) ? text : shownSecret(text);
}

/** A secret is shown by its beginning, so that its owner sees where it was sent. */
function shownSecret(text: string): string {
  return /(?:marina_(?:test|live)_|whsec_)…/.exec(withoutSecrets(text))?.[0] ?? leftOut;
}

/** The most digits in a row, in a text of free form and in one of a field's form. A BVN and a NIN have eleven. */
const maxDigitsOfFreeText = 7;
const maxDigitsOfForm = 9;
/** A reference has a digit and no blank. A text without a digit may be a name, and one with blanks an address. */
const referenceForm = /^(?=[^\d]*\d)\w[\w.:#-]{0,63}$/;
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const instant = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+ -]\d{2}:\d{2})$/;
const date = /\d{4}[-.]\d{2}[-.]\d{2}|\d{2}[-.]\d{2}[-.]\d{4}/;
/** A text that a form takes only if it takes any. */
const anyText = 'Ada Obi, 12 Marina';

function isHarmless(field: DescField, text: string): boolean {
  if (field.enum !== undefined)
    return [...enumNames(field.enum).values()].includes(text) || field.enum.values.some(({ name }) => name === text);
  if (field.message !== undefined) return field.message.typeName === TimestampSchema.typeName && instant.test(text);
  if (field.scalar === ScalarType.STRING) return isHarmlessText(field, text);
  if (field.scalar === ScalarType.BOOL) return text === 'true' || text === 'false';
  return /^-?(?:0|[1-9]\d{0,19})$/.test(text) && !isPersonalNumber(text);
}

function isHarmlessText(field: DescField, text: string): boolean {
  const form = formOf(field);
  if (!form.expression.test(text)) return false;
  if (form.takesAnyText) {
    if (!referenceForm.test(text)) return false;
    return longestNumber(text) <= maxDigitsOfFreeText || (uuid.test(text) && /[a-f]/i.test(text));
  }
  return longestNumber(text) <= maxDigitsOfForm && (form.isDate || !date.test(text));
}

interface TextForm {
  readonly expression: RegExp;
  /** Whether it takes a customer's name and address too. */
  readonly takesAnyText: boolean;
  readonly isDate: boolean;
}

const forms = new WeakMap<DescField, TextForm>();

/** The form that a text field asks for. A field without one is for what only we make, such as a cursor: no text is shown. */
function formOf(field: DescField): TextForm {
  let form = forms.get(field);
  if (form === undefined) {
    const { pattern } = getOption(field, fieldOption);
    const expression = pattern === '' ? /^$/ : new RegExp(`^(?:${pattern})$`, 'u');
    const isDate = expression.test('2026-01-31') && !expression.test('A');
    form = { expression, takesAnyText: expression.test(anyText), isDate };
    forms.set(field, form);
  }
  return form;
}

/** Whether a text field has a form that takes any text, so that anything may be in it, also in an answer. */
export function takesAnyText(field: DescField): boolean {
  return field.scalar === ScalarType.STRING && formOf(field).takesAnyText;
}

/** Whether a number has as many digits as a BVN or a NIN, or those of a telephone number with its country. */
function isPersonalNumber(text: string): boolean {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace(/^[+-]/, '').split('.');
  const length = whole.replace(/^0+/, '').length + Number(exponent);
  const digits = (whole + fraction).replace(/^0+/, '');
  return length === 11 || digits.length === 11 || (digits.startsWith('234') && (length === 13 || digits.length === 13));
}

/** A JSON body with the values only that may be shown, with their own digits; undefined unless it is a JSON object. */
export function shownBody(schema: DescMessage, body: Buffer, numbers: LeftOutNumbers): string | undefined {
  try {
    const tree = readJson(body);
    return tree instanceof JsonObject ? shownObject(schema, tree, numbers) : undefined;
  } catch (error) {
    if (error instanceof MalformedJson) return undefined;
    throw error;
  }
}

function shownObject(schema: DescMessage, object: JsonObject, numbers: LeftOutNumbers): string {
  const members = object.names.map((name, at) => {
    const field = schema.fields.find((each) => each.name === name || each.jsonName === name);
    const shown = field === undefined ? shownName(name) : name;
    return `${JSON.stringify(shown)}:${shownTree(field, object.values[at] ?? null, numbers)}`;
  });
  return `{${members.join(',')}}`;
}

function shownTree(field: DescField | undefined, tree: JsonTree, numbers: LeftOutNumbers): string {
  const left = JSON.stringify(leftOut);
  if (tree instanceof JsonNumber) {
    if (field !== undefined && isShownNumber(field, tree.text)) return tree.text;
    numbers.add(tree.text);
    // As an answer writes it.
    if (Number.isSafeInteger(Number(tree.text))) numbers.add(String(Number(tree.text)));
    return left;
  }
  if (typeof tree === 'string') return JSON.stringify(shownText(field, tree));
  if (field === undefined) return left;
  if (tree === null || typeof tree === 'boolean') return String(tree);
  if (tree instanceof JsonObject) return field.message === undefined ? left : shownObject(field.message, tree, numbers);
  if (field.fieldKind !== 'list') return left;
  return `[${tree.map((item) => shownTree(field, item, numbers)).join(',')}]`;
}

/** A number is shown where one belongs, unless it may be a person's. */
function isShownNumber(field: DescField, text: string): boolean {
  const isOfNumber = field.enum === undefined && field.scalar !== undefined && field.scalar !== ScalarType.STRING;
  return isOfNumber ? !isPersonalNumber(text) : /^-?\d{1,7}$/.test(text);
}

/** A token of JSON; the first group is a string without its end, which only a cut leaves. */
const jsonToken = /"(?:[^"\\]|\\.)*"|("(?:[^"\\]|\\.)*\\?$)|[{}[\],:]|[^"{}[\],:\s]+/g;
/** A long number that stands alone in a text. In an id, digits stand beside letters. */
const loneNumber = /(?<!\w)\d{10,}(?!\w)/g;

/**
 * An answer's JSON, which may be cut at its end: without the request's numbers that are left out, and with those texts of the
 * partner only that may be shown. `freeTexts` are the members with a partner's own text, by the field that it was given in.
 */
export function shownAnswer(text: string, numbers: LeftOutNumbers, freeTexts: ReadonlyMap<string, DescField>): string {
  if (numbers.size === 0 && !mayHavePersonal(text, freeTexts)) return text;
  let previous = '';
  /** The name of the member whose value comes next. */
  let member = '';
  return text.replace(jsonToken, (token: string, unended: string | undefined) => {
    if (unended !== undefined) return leftOut;
    member = token === ':' ? previous : previous === ':' ? member : '';
    previous = token;
    if (numbers.has(token)) return JSON.stringify(leftOut);
    if (!token.startsWith('"')) return token;
    const field = member === '' ? undefined : freeTexts.get(member);
    if (field === undefined) return token.replace(loneNumber, leftOut);
    return JSON.stringify(shownText(field, JSON.parse(token)));
  });
}

/** Whether a text must be read. Most answers have neither a long number nor a partner's text. */
function mayHavePersonal(text: string, freeTexts: ReadonlyMap<string, DescField>): boolean {
  return /\d{10}/.test(text) || [...freeTexts.keys()].some((name) => text.includes(`${name}:"`));
}
