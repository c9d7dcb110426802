import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import type { FieldRules } from '../gen/marina/options/v1/options_pb.ts';
import { isTimestampInRange } from '../json/timestamps.ts';
import { isWholeText } from '../json/values.ts';
import { enumNames } from '../lib/enums.ts';
import { compilePattern } from './text-pattern.ts';

/** Says what is wrong with a value, as it follows the field's name in the error's message; undefined: nothing. */
export type Problem = (value: unknown, siblings: Readonly<Record<string, unknown>>) => string | undefined;

/** What can be wrong with a field, by the stage that looks for it. */
export interface FieldProblems {
  readonly type: Problem | undefined;
  readonly missing: Problem | undefined;
  readonly range: Problem | undefined;
}

/** What protobuf can carry and JSON cannot: it is refused as JSON's wrong type is, so that all doors take the same. */
export function typeProblem(field: DescField, hasPresence: boolean): Problem | undefined {
  if (field.enum !== undefined) {
    const names = enumNames(field.enum);
    const problem = `must be one of ${[...names.values()].join(', ')}.`;
    return (value) => (names.has(value as number) || (value === 0 && !hasPresence) ? undefined : problem);
  }
  if (field.scalar === ScalarType.STRING) {
    return (value) => (isWholeText(value as string) ? undefined : 'must not contain NUL or lone surrogates.');
  }
  if (field.scalar === ScalarType.INT64 || field.scalar === ScalarType.UINT64) {
    return (value) => (isSafe(value as bigint) ? undefined : 'must not be beyond 2^53 - 1.');
  }
  if (field.message?.typeName === TimestampSchema.typeName) {
    return (value) => (isTimestampInRange(value as Timestamp) ? undefined : 'must lie in the years 1 to 9999.');
  }
  return undefined;
}

/** A field that has to be there, always or when another has a certain value. */
export function missingProblem(rules: FieldRules, siblings: readonly DescField[]): Problem | undefined {
  const condition = rules.onlyWith === '' ? undefined : compileCondition(rules.onlyWith, siblings);
  if (condition !== undefined) {
    return (value, values) =>
      value === undefined && condition.holds(values) ? `is required when ${condition.text}.` : undefined;
  }
  return rules.required ? (value) => (isThere(value) ? undefined : 'is required.') : undefined;
}

/** Protobuf cannot tell an empty list from none. */
function isThere(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined;
}

/** A list that is too long. */
export function lengthProblem({ maxItems }: FieldRules): Problem | undefined {
  if (maxItems === 0) return undefined;
  const problem = `must have at most ${maxItems} items.`;
  return (value) => ((value as readonly unknown[]).length > maxItems ? problem : undefined);
}

/** A value outside its bounds, of another form, or one that may not be there at all. */
export function rangeProblem(field: DescField, rules: FieldRules, siblings: readonly DescField[]): Problem | undefined {
  const bounds = field.scalar === ScalarType.STRING ? textProblem(rules) : numberProblem(field, rules);
  if (rules.onlyWith === '') return bounds;
  const condition = compileCondition(rules.onlyWith, siblings);
  return (value, values) =>
    condition.holds(values) ? bounds?.(value, values) : `must be absent unless ${condition.text}.`;
}

/** The value as it is used and compared: the default in place of none, upper-case where case does not matter. */
export function settle(field: DescField, rules: FieldRules): ((value: unknown) => unknown) | undefined {
  const { defaultValue } = rules;
  if (defaultValue !== undefined) {
    const value = isLong(field) ? defaultValue : Number(defaultValue);
    return (given) => given ?? value;
  }
  return rules.uppercase ? (given) => (given as string | undefined)?.toUpperCase() : undefined;
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

function numberProblem(field: DescField, { minimum, maximum }: FieldRules): Problem | undefined {
  if (minimum === undefined && maximum === undefined) return undefined;
  const convert = isLong(field) ? (bound: bigint) => bound : Number;
  const least = minimum === undefined ? Number.NEGATIVE_INFINITY : convert(minimum);
  const most = maximum === undefined ? Number.POSITIVE_INFINITY : convert(maximum);
  const problem = describeNumbers(minimum, maximum);
  return (value) => ((value as number | bigint) >= least && (value as number | bigint) <= most ? undefined : problem);
}

function describeNumbers(minimum: bigint | undefined, maximum: bigint | undefined): string {
  const [least, most] = [minimum?.toLocaleString('en-US'), maximum?.toLocaleString('en-US')];
  if (least === undefined) return `must be at most ${most}.`;
  return most === undefined ? `must be at least ${least}.` : `must be ${least} to ${most}.`;
}

interface Condition {
  /** As in "`type` is `limit`". */
  readonly text: string;
  readonly holds: (values: Readonly<Record<string, unknown>>) => boolean;
}

/** Reads `field=VALUE`. */
function compileCondition(text: string, siblings: readonly DescField[]): Condition {
  const [name, valueName] = text.split('=');
  const field = siblings.find((sibling) => sibling.name === name);
  const value = field?.enum?.values.find((candidate) => candidate.name === valueName);
  if (field?.enum === undefined || value === undefined) throw new Error(`${text}: no such field and value`);
  return {
    text: `\`${name}\` is \`${enumNames(field.enum).get(value.number)}\``,
    holds: (values) => values[field.localName] === value.number,
  };
}

function isLong(field: DescField): boolean {
  return field.scalar === ScalarType.INT64 || field.scalar === ScalarType.UINT64;
}

function isSafe(value: bigint): boolean {
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER;
}
