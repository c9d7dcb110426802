import { type DescField, type DescMessage, getOption, type Message } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { field as fieldOption } from '../gen/marina/options/v1/options_pb.ts';
import { ApiError, type ErrorCode } from '../lib/errors.ts';
import {
  type FieldProblems,
  lengthProblem,
  missingProblem,
  type Problem,
  rangeProblem,
  settle,
  typeProblem,
} from './field-checks.ts';

/** Checks some of a request's fields and then fills in defaults and upper-cases. Throws an ApiError. */
export type FieldCheck = (message: Message) => void;

/**
 * Compiles the rules of some of a message's fields. They are checked in stages over the whole message, each in the
 * order of the proto: types (which only the binary doors can still break here), missing fields, range and pattern.
 */
export function compileFieldRules(schema: DescMessage, fields: readonly DescField[]): FieldCheck {
  const rules = compile(schema, fields, new Map());
  return (message) => {
    const values = message as unknown as Values;
    for (const stage of stages) check(stage, rules, values, '');
    settleAll(rules, values);
  };
}

type Values = Record<string, unknown>;

/** The problems a field can have, in the order in which they are looked for. */
const stages = ['type', 'missing', 'range'] as const;
type Stage = (typeof stages)[number];

interface FieldRule {
  readonly name: string;
  readonly key: string;
  readonly isList: boolean;
  /** The rules of the message inside. */
  readonly nested: readonly FieldRule[] | undefined;
  readonly problems: FieldProblems;
  /** What is wrong with a list as a whole, looked for before its items' ranges. */
  readonly length: Problem | undefined;
  readonly settle: ((value: unknown) => unknown) | undefined;
  /** What a value that breaks a rule is answered with instead of `invalid_request`. */
  readonly malformedCode: ErrorCode | undefined;
}

function check(stage: Stage, rules: readonly FieldRule[], values: Values, path: string): void {
  for (const rule of rules) {
    const value = values[rule.key];
    if (stage === 'missing') {
      const problem = rule.problems.missing?.(value, values);
      if (problem !== undefined) throw refusal('missing_required_field', path + rule.name, problem);
    }
    if (value === undefined) continue;
    if (!rule.isList) {
      checkValue(stage, rule, value, values, path + rule.name);
    } else {
      const items = value as readonly unknown[];
      const problem = stage === 'range' ? rule.length?.(items, values) : undefined;
      if (problem !== undefined) throw refusal('invalid_request', path + rule.name, problem);
      for (let at = 0; at < items.length; at += 1) {
        checkValue(stage, rule, items[at], values, `${path}${rule.name}[${at}]`);
      }
    }
  }
}

function checkValue(stage: Stage, rule: FieldRule, value: unknown, values: Values, path: string): void {
  if (stage !== 'missing') {
    const problem = rule.problems[stage]?.(value, values);
    if (problem !== undefined) {
      if (rule.malformedCode !== undefined) throw new ApiError(rule.malformedCode);
      throw refusal('invalid_request', path, problem);
    }
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
      // An absent field stays absent, instead of becoming a member that is undefined.
      if (settled !== value) values[rule.key] = settled;
    }
  }
}

function refusal(code: ErrorCode, param: string, problem: string): ApiError {
  return new ApiError(code, { param, message: `\`${param}\` ${problem}` });
}

function compile(
  schema: DescMessage,
  fields: readonly DescField[],
  known: Map<DescMessage, readonly FieldRule[]>,
): readonly FieldRule[] {
  const compiled: FieldRule[] = [];
  if (fields === schema.fields) known.set(schema, compiled);
  for (const field of fields) compiled.push(compileField(field, fields, known));
  return compiled;
}

function compileField(
  field: DescField,
  siblings: readonly DescField[],
  known: Map<DescMessage, readonly FieldRule[]>,
): FieldRule {
  const rules = getOption(field, fieldOption);
  const hasPresence = field.presence !== FeatureSet_FieldPresence.IMPLICIT;
  const isList = field.fieldKind === 'list';
  const needsPresence = (rules.required && !isList) || rules.defaultValue !== undefined || rules.onlyWith !== '';
  if (needsPresence && !hasPresence) {
    throw new Error(`${field}: whether it is there can only be told of an optional field`);
  }
  if (rules.maxItems > 0 && !isList) throw new Error(`${field}: only a list has items`);
  const inside = field.message?.typeName === TimestampSchema.typeName ? undefined : field.message;
  return {
    name: field.name,
    key: field.localName,
    isList,
    nested: inside && (known.get(inside) ?? compile(inside, inside.fields, known)),
    problems: {
      type: typeProblem(field, hasPresence || isList),
      missing: missingProblem(rules, siblings),
      range: rangeProblem(field, rules, siblings),
    },
    length: lengthProblem(rules),
    settle: settle(field, rules),
    malformedCode: rules.malformedCode === '' ? undefined : (rules.malformedCode as ErrorCode),
  };
}
