import assert from 'node:assert/strict';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Controls } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import type { GrpcClient } from '../../../src/kit/grpc-client.ts';
import { eventually } from '../eventually.ts';
import type { RestAnswer, TestGateway } from '../gateway.ts';
import { scrape } from '../metrics.ts';
import type { fc } from '../properties.ts';
import type { OperatorName, TwoOperators } from '../two-operators.ts';
import type { WebhookReceiver } from '../webhook-receiver.ts';
import type { PartnerModel } from './partner-model.ts';

/** The operators' calls, made again until there is an answer. */
export type ModelOperators = Pick<TwoOperators, 'as' | 'refused' | 'settle' | 'propose' | 'approve'>;

/** Where the records of the broker are read from: those before belong to earlier sequences. */
export interface RecordPositions {
  orders: bigint;
  allocations: bigint;
  withdrawals: bigint;
}

/** The partner of one sequence. */
export interface ModelPartner {
  readonly id: string;
  /** Its present key. */
  key: string;
  /** Orders are for the first one. Withdrawals leave from the second one, which has the money that was allocated to it. */
  readonly accounts: readonly string[];
}

/** A gateway of two replicas, and the partner of one sequence. */
export interface Whole {
  readonly controls: GrpcClient<typeof Controls>;
  readonly partner: ModelPartner;
  /** Ask one of the replicas, as a partner does who repeats each request until it has a clear answer. */
  readonly replicas: readonly TestGateway['rest'][];
  readonly operators: ModelOperators;
  readonly positions: RecordPositions;
  /** Has an endpoint for each partner. */
  readonly receiver: WebhookReceiver;
  /** The operations ports of the replicas that run now. */
  readonly opsPorts: () => readonly number[];
  /** How many requests and calls so far had no clear answer in time: what became of them may be another outcome. */
  readonly unclear: () => number;
  /** Ends the second replica, and starts another one in its place. */
  readonly restart: () => Promise<void>;
  /** Ends what waited for the command that has just ended. */
  readonly settle: () => void;
  /** Waits until nothing disturbs the replicas. */
  readonly calm: () => Promise<void>;
}

/** Numbers that choose: an order, a replica, and one thing more. */
export type Choice = readonly number[];

/** How long what happens in the background may take. */
export const boundMs = 25_000;

/** Asks one replica or another. */
export function ask({ replicas, partner }: Whole, replica: number, method: string, path: string, more: object = {}) {
  const rest = replicas[replica % replicas.length] as TestGateway['rest'];
  return rest(method, path, { key: partner.key, ...more });
}

/** Makes a call as an operator, with a reason. */
export function operate({ operators }: Whole, call: string, request: JsonObject = {}, name: OperatorName = 'ada') {
  return operators.as(name, call, { ...request, reason: 'the model' });
}

/** An answer that is expected: its status, and of an error its code. */
export interface ExpectedAnswer {
  readonly status: number;
  readonly code?: string | undefined;
}

export function assertAnswer(answer: RestAnswer, ...expected: readonly ExpectedAnswer[]): void {
  const isAsExpected = expected.some((one) => matches(answer, one));
  assert.ok(isAsExpected, `${answer.status} ${answer.text}\nis none of ${JSON.stringify(expected)}`);
}

/** The id of what was stored, also where the answer is an error. */
export function idOf({ body, headers }: RestAnswer): string {
  const location = headers.get('location') ?? '';
  return body.id ?? location.slice(location.lastIndexOf('/') + 1);
}

/** How an object ends, and the answers to the request that creates it. */
export interface Outcome {
  readonly state: string;
  /** The answers to its request that are right. */
  readonly answers: readonly ExpectedAnswer[];
  /** The answers to the same request when it comes again: 200, or its first error. */
  readonly again: readonly ExpectedAnswer[];
}

const created: ExpectedAnswer = { status: 201 };
const repeated: ExpectedAnswer = { status: 200 };

/**
 * The outcomes that a request can have. Without trouble it is one. If it had no clear answer at first, the broker may never have
 * got the object, and the answer may be that of a repeated request.
 */
export function outcomesOf(
  kind: string,
  end: ExpectedAnswer & { readonly state: string },
  isUnclear: boolean,
): Outcome[] {
  const { state } = end;
  const usual = [end.code === undefined ? created : { status: end.status, code: end.code }];
  if (!isUnclear) return [{ state, answers: usual, again: end.code === undefined ? [repeated] : usual }];
  const notSent = { status: 503, code: `${kind}_not_sent` };
  const any = [created, repeated];
  const refused = { state: 'refused', answers: [...any, notSent], again: [repeated, notSent] };
  return [{ state, answers: [...any, ...usual], again: [repeated, ...usual] }, refused];
}

const matches = ({ status, body }: RestAnswer, one: ExpectedAnswer) =>
  one.status === status && one.code === body?.error?.code;

/**
 * Compares an answer with the outcomes that it allows, waits until the object has one of these, and returns that one. With the
 * first replica an operator has the broker's record asked now; otherwise the reconciler does it in its own time.
 */
export async function settledAs<One extends Outcome>(
  whole: Whole,
  replica: number,
  path: string,
  answer: RestAnswer,
  outcomes: readonly One[],
): Promise<One & { readonly id: string }> {
  assertAnswer(answer, ...outcomes.flatMap(({ answers }) => answers));
  const possible = outcomes.filter(({ answers }) => answers.some((one) => matches(answer, one)));
  const id = idOf(answer);
  return eventually(async () => {
    const { body } = await ask(whole, replica, 'GET', `${path}/${id}`);
    const found = possible.find(({ state }) => state === body.state);
    const isUnsettled = ['sending', 'uncertain'].includes(body.state);
    if (isUnsettled && replica === 0) await operate(whole, 'Diagnostics.ReconcileNow', { object_id: id });
    assert.ok(found !== undefined, `${id} is ${body.state}, and none of ${possible.map(({ state }) => state)}`);
    return { ...found, id };
  }, boundMs);
}

export type Command = fc.AsyncCommand<PartnerModel, Whole>;

/** Waits until a gauge of each replica has a value: an end of a pause or a stop reaches the others a moment later. */
export async function untilGauge({ opsPorts }: Whole, name: string, value: number): Promise<void> {
  await eventually(async () => {
    for (const port of opsPorts()) assert.equal((await scrape(port)).value(name), value, name);
  }, boundMs);
}
