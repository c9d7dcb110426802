import { type DescField, type DescMessage, getOption, type Message, ScalarType } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type FieldRules, field as fieldOption } from '../../gen/marina/options/v1/options_pb.ts';
import { enumNames } from '../../kit/enums.ts';
import { ApiError, type ErrorCode, invalidParam } from './errors.ts';
import { isTimestampInRange, isWholeText } from './json/reader.ts';

/** Checks some fields of a request, then sets defaults and upper-cases values. Throws an ApiError. */
export type FieldCheck = (message: Message) => void;

type Values = Record<string, unknown>;

/** The error of a value, as text after the field's name; undefined if it is valid. */
type Problem = (value: unknown, siblings: Values) => string | undefined;

/** The check of a text field's characters. */
export type TextProblem = (field: DescField) => (text: string) => string | undefined;

const stages = ['type', 'missing', 'range'] as const;
type Stage = (typeof stages)[number];

interface FieldRule extends Readonly<Record<Stage, Problem | undefined>> {
  readonly name: string;
  readonly key: string;
  readonly isList: boolean;
  readonly nested: readonly FieldRule[] | undefined;
  /** The error of a list as a whole, checked before its items' ranges. */
  readonly length: Problem | undefined;
  /** The value in use: the default for an absent one, upper-case if case does not matter. */
  readonly settle: ((value: unknown) => unknown) | undefined;
  /** The code for an invalid value instead of `invalid_request`. */
  readonly malformedCode: ErrorCode | undefined;
}

/**
 * Compiles the rules of some fields of a message. They are checked in stages over the whole message, each in the order
 * of the proto: types (which only protobuf's binary encoding can still break), missing fields, ranges and patterns.
 * @param textOf which characters each text may have
 */
export function compileFieldRules(
  schema: DescMessage,
  fields: readonly DescField[],
  textOf: TextProblem = wholeText,
): FieldCheck {
  const rules = compile(schema, fields, new Map(), textOf);
  return (message) => {
    const values = message as unknown as Values;
    for (const stage of stages) check(stage, rules, values, '');
    settleAll(rules, values);
  };
}

function check(stage: Stage, rules: readonly FieldRule[], values: Values, path: string): void {
  for (const rule of rules) {
    const value = values[rule.key];
    if (stage === 'missing') {
      const problem = rule.missing?.(value, values);
      if (problem !== undefined) throw invalidParam(path + rule.name, problem, 'missing_required_field');
    }
    if (value === undefined) continue;
    if (!rule.isList) {
      checkValue(stage, rule, value, values, path + rule.name);
    } else {
      const items = value as readonly unknown[];
      const problem = stage === 'range' ? rule.length?.(items, values) : undefined;
      if (problem !== undefined) throw invalidParam(path + rule.name, problem);
      for (let at = 0; at < items.length; at += 1) {
        checkValue(stage, rule, items[at], values, `${path}${rule.name}[${at}]`);
      }
    }
  }
}

function checkValue(stage: Stage, rule: FieldRule, value: unknown, values: Values, path: string): void {
  if (stage !== 'missing') {
    const problem = rule[stage]?.(value, values);
    if (problem !== undefined && rule.malformedCode !== undefined) throw new ApiError(rule.malformedCode);
    if (problem !== undefined) throw invalidParam(path, problem);
  }
  if (rule.nested !== undefined) check(stage, rule.nested, value as Values, `${path}.`);
}

function settleAll(rules: readonly FieldRule[], values: Values): void {
  for (const rule of rules) {
    const value = values[rule.key];
    if (rule.nested !== undefined && value !== undefined) {
      for (const item of rule.isList ? (value as readonly Values[]) : [value as Values]) settleAll(rule.nested, item);
    } else if (rule.settle !== undefined) {
      const settled = rule.isList ? (value as readonly unknown[]).map(rule.settle) : rule.settle(value);
      // An absent field must not become a member that is undefined.
      if (settled !== value) values[rule.key] = settled;
    }
  }
}

type Compiled = Map<DescMessage, readonly FieldRule[]>;

function compile(
  schema: DescMessage,
  fields: readonly DescField[],
  known: Compiled,
  textOf: TextProblem,
): readonly FieldRule[] {
  const compiled: FieldRule[] = [];
  if (fields === schema.fields) known.set(schema, compiled);
  for (const field of fields) compiled.push(compileField(field, fields, known, textOf));
  return compiled;
}

function compileField(
  field: DescField,
  siblings: readonly DescField[],
  known: Compiled,
  textOf: TextProblem,
): FieldRule {
  // Its value is not a member of the message.
  if (field.oneof !== undefined) throw new Error(`${field}: no rule is checked inside a oneof`);
  const rules = getOption(field, fieldOption);
  const hasPresence = field.presence !== FeatureSet_FieldPresence.IMPLICIT;
  const isList = field.fieldKind === 'list';
  const needsPresence = (rules.required && !isList) || rules.defaultValue !== undefined || rules.onlyWith !== '';
  if (needsPresence && !hasPresence) {
    throw new Error(`${field}: only of an optional field can it be known whether it is there`);
  }
  if (rules.maxItems > 0 && !isList) throw new Error(`${field}: only a list has items`);
  const inside = field.message?.typeName === TimestampSchema.typeName ? undefined : field.message;
  const condition = rules.onlyWith === '' ? undefined : compileCondition(rules.onlyWith, siblings);
  return {
    name: field.name,
    key: field.localName,
    isList,
    nested: inside && (known.get(inside) ?? compile(inside, inside.fields, known, textOf)),
    type: typeProblem(field, hasPresence || isList, textOf),
    missing: missingProblem(rules, condition),
    length: lengthProblem(rules),
    range: rangeProblem(field, rules, condition),
    settle: settle(field, rules),
    malformedCode: rules.malformedCode === '' ? undefined : (rules.malformedCode as ErrorCode),
  };
}

interface Condition {
  /** As in "`type` is `limit`". */
  readonly text: string;
  readonly holds: (values: Values) => boolean;
}

/** Reads `field=VALUE` or `field=VALUE|VALUE`: the field and its values by their names. Throws if there are none such. */
export function readCondition(text: string, siblings: readonly DescField[]) {
  const [name, valueNames = ''] = text.split('=');
  const field = siblings.find((sibling) => sibling.name === name);
  const values = valueNames.split('|').map((each) => field?.enum?.values.find(({ name }) => name === each));
  if (field?.enum === undefined || values.includes(undefined)) throw new Error(`${text}: no such field and value`);
  const words = enumNames(field.enum);
  const numbers = values.flatMap((value) => value?.number ?? []);
  return { field, numbers, words: numbers.flatMap((number) => words.get(number) ?? []) };
}

function compileCondition(text: string, siblings: readonly DescField[]): Condition {
  const { field, numbers, words } = readCondition(text, siblings);
  return {
    text: `\`${field.name}\` is ${words.map((word) => `\`${word}\``).join(' or ')}`,
    holds: (values) => numbers.includes(values[field.localName] as number),
  };
}

/** Refuses values that protobuf can carry and JSON cannot, so that all protocols accept the same. */
function typeProblem(field: DescField, hasPresence: boolean, textOf: TextProblem): Problem | undefined {
  if (field.enum !== undefined) {
    const names = enumNames(field.enum);
    const problem = `must be one of ${[...names.values()].join(', ')}.`;
    return (value) => (names.has(value as number) || (value === 0 && !hasPresence) ? undefined : problem);
  }
  if (field.scalar === ScalarType.STRING) {
    const problemOf = textOf(field);
    return (value) => problemOf(value as string);
  }
  if (isLong(field)) {
    return (value) => (isSafe(value as bigint) ? undefined : 'must not be beyond 2^53 - 1.');
  }
  if (field.message?.typeName === TimestampSchema.typeName) {
    return (value) => (isTimestampInRange(value as Timestamp) ? undefined : 'must lie in the years 1 to 9999.');
  }
  return undefined;
}

const wholeText: TextProblem = () => (text) =>
  isWholeText(text) ? undefined : 'must not contain NUL or lone surrogates.';

/** A field that is required, always or under a condition. Protobuf cannot tell an empty list from an absent one. */
function missingProblem({ required }: FieldRules, condition: Condition | undefined): Problem | undefined {
  if (condition !== undefined) {
    const problem = `is required when ${condition.text}.`;
    return (value, values) => (value === undefined && condition.holds(values) ? problem : undefined);
  }
  const isThere = (value: unknown) => (Array.isArray(value) ? value.length > 0 : value !== undefined);
  return required ? (value) => (isThere(value) ? undefined : 'is required.') : undefined;
}

function lengthProblem({ maxItems }: FieldRules): Problem | undefined {
  if (maxItems === 0) return undefined;
  const problem = `must have at most ${maxItems} items.`;
  return (value) => ((value as readonly unknown[]).length > maxItems ? problem : undefined);
}

/** A value out of range, of another form, or not allowed here at all. */
function rangeProblem(field: DescField, rules: FieldRules, condition: Condition | undefined): Problem | undefined {
  const bounds = field.scalar === ScalarType.STRING ? textProblem(rules) : numberProblem(field, rules);
  if (condition === undefined) return bounds;
  const problem = `must be absent unless ${condition.text}.`;
  return (value, values) => (condition.holds(values) ? bounds?.(value, values) : problem);
}

function settle(field: DescField, { defaultValue, uppercase }: FieldRules): FieldRule['settle'] {
  if (defaultValue !== undefined) {
    const value = isLong(field) ? defaultValue : Number(defaultValue);
    return (given) => given ?? value;
  }
  return uppercase ? (given) => (given as string | undefined)?.toUpperCase() : undefined;
}

function textProblem({ required, minBytes, maxBytes, pattern, hint }: FieldRules): Problem | undefined {
  const least = Math.max(minBytes, required ? 1 : 0);
  const matches = pattern === '' ? undefined : compilePattern(pattern);
  if (least === 0 && maxBytes === 0 && matches === undefined) return undefined;
  const problem = hint === '' ? describeBytes(least, maxBytes) : `must be ${hint}.`;
  return (value) => {
    const text = value as string;
    // A text has at least as many bytes as code units.
    if (maxBytes > 0 && (text.length > maxBytes || Buffer.byteLength(text) > maxBytes)) return problem;
    if (least > 0 && text.length < least && Buffer.byteLength(text) < least) return problem;
    return matches === undefined || matches(text) ? undefined : problem;
  };
}

function describeBytes(least: number, most: number): string {
  if (most === 0) return least <= 1 ? 'must not be empty or malformed.' : `must have at least ${least} bytes.`;
  return least === 0 ? `must have at most ${most} bytes.` : `must have ${least} to ${most} bytes.`;
}

/** Compiles a pattern for the whole text. */
export function compilePattern(pattern: string): (text: string) => boolean {
  // Without unbounded or group repetition, the pattern bounds the work on any text.
  const skeleton = pattern.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x');
  if (/[*+]|\{\d+,\}|\)[?{]/.test(skeleton)) throw new Error(`the pattern ${pattern} repeats without a bound`);
  const expression = new RegExp(`^(?:${pattern})$`, 'u');
  return (text) => expression.test(text);
}

function numberProblem(field: DescField, { minimum, maximum }: FieldRules): Problem | undefined {
  if (minimum === undefined && maximum === undefined) return undefined;
  const convert = isLong(field) ? (bound: bigint) => bound : Number;
  const least = minimum === undefined ? Number.NEGATIVE_INFINITY : convert(minimum);
  const most = maximum === undefined ? Number.POSITIVE_INFINITY : convert(maximum);
  const problem = describeNumbers(minimum?.toLocaleString('en-US'), maximum?.toLocaleString('en-US'));
  return (value) => ((value as number | bigint) >= least && (value as number | bigint) <= most ? undefined : problem);
}

function describeNumbers(least: string | undefined, most: string | undefined): string {
  if (least === undefined) return `must be at most ${most}.`;
  return most === undefined ? `must be at least ${least}.` : `must be ${least} to ${most}.`;
}

function isLong({ scalar }: DescField): boolean {
  return scalar === ScalarType.INT64 || scalar === ScalarType.UINT64;
}

function isSafe(value: bigint): boolean {
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER;
}
