import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ApplicationOutcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { fourTypes, goodFields } from '../documents.ts';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { noisePng } from '../images.ts';
import { fc } from '../properties.ts';
import type { ModelApplication, PartnerModel } from './partner-model.ts';
import {
  ask,
  assertAnswer,
  boundMs,
  type Choice,
  type Command,
  idOf,
  type Outcome,
  outcomesOf,
  settledAs,
  type Whole,
} from './surroundings.ts';

/** The first state of an application that lasts, by its last name, and its state once all documents are there. */
interface End {
  readonly state: string;
  readonly status: number;
  readonly code?: string;
  /** Whether the answer to its request may be lost. */
  readonly isLost?: boolean;
  readonly decided?: string;
}

const open = { state: 'documents_required', status: 201, decided: 'opened' } as const;
const rejected = { state: 'rejected', status: 422, code: 'application_rejected' } as const;
const unplaced = { state: 'unplaced', status: 201 } as const;
const ends: Readonly<Record<string, End>> = {
  Okafor: open,
  'SIM-DECLINE': { ...open, decided: 'rejected' },
  'SIM-WAIT': { ...open, decided: 'submitted' },
  'SIM-REJECT': rejected,
  'SIM-LOST': open,
  'SIM-LOSTREJECT': { ...rejected, isLost: true },
  'SIM-RESET': unplaced,
  'SIM-RESETAFTER': open,
};

function outcomes(end: End, isUnclear: boolean): Outcome[] {
  const known = outcomesOf('application', end, isUnclear);
  const lost = end.isLost && !isUnclear ? outcomesOf('application', { state: end.state, status: 201 }, false) : [];
  const absent = isUnclear ? outcomesOf('application', unplaced, true) : [];
  return [...known, ...lost, ...absent];
}

function send(whole: Whole, replica: number, idempotencyKey: string, last_name: string) {
  return ask(whole, replica, 'POST', '/v1/applications', { idempotencyKey, body: { ...goodFields, last_name } });
}

/** Applies for an account; then sends the same request again. */
function apply(lastName: string, replica: number): Command {
  return {
    toString: () => `apply for ${lastName}`,
    check: () => true,
    run: async (model, whole) => {
      const [key, before] = [randomUUID(), whole.unclear()];
      const answer = await send(whole, replica, key, lastName);
      if (model.forbids('apply')) return assertAnswer(answer, { status: 503, code: 'trading_paused' });
      const possible = outcomes(ends[lastName] ?? open, whole.unclear() > before);
      const { id, state, again } = await settledAs(whole, replica, '/v1/applications', answer, possible);
      const repeated = await send(whole, 1 - replica, key, lastName);
      assertAnswer(repeated, ...again);
      assert.equal(idOf(repeated), id);
      model.applications.push({ id, lastName, state, documents: new Map() });
    },
  };
}

/** Sends the next document of an application, or one that the broker has. The last one submits the application. */
function sendDocument([at = 0, replica = 0, repeat = 0]: Choice): Command {
  return {
    toString: () => `send a document of application ${at}${repeat % 4 === 0 ? ' again' : ''}`,
    check: ({ applications }) => applications.length > 0,
    run: async (model, whole) => {
      const application = model.applications[at % model.applications.length] as ModelApplication;
      const { documents, id } = application;
      const [first] = documents.keys();
      const next = fourTypes.find((type) => !documents.has(type));
      const type = (repeat % 4 === 0 ? first : next) ?? 'photo';
      const file = documents.get(type) ?? (await noisePng(8, 8));
      const path = `/v1/applications/${id}/documents/${type}`;
      const request = { body: file, headers: { 'content-type': 'image/png' } };
      const answer = await ask(whole, replica, 'PUT', path, request);
      if (application.state !== 'documents_required' && application.state !== 'submitted') {
        return assertAnswer(answer, { status: 409, code: 'application_not_accepting_documents' });
      }
      if (documents.has(type)) return assertAnswer(answer, { status: 200 });
      if (model.forbids('apply')) return assertAnswer(answer, { status: 503, code: 'trading_paused' });
      assertAnswer(answer, { status: 200 });
      documents.set(type, file);
      if (documents.size === fourTypes.length) application.state = ends[application.lastName]?.decided ?? 'opened';
      await untilItIs(whole, application);
    },
  };
}

/** Lets the broker open or decline an application that waits for its decision. */
function decide([at = 0, choice = 0]: Choice): Command {
  const isOpened = choice % 2 === 0;
  return {
    toString: () => `${isOpened ? 'open' : 'decline'} application ${at}`,
    check: (model) => submitted(model).length > 0,
    run: async (model, whole) => {
      const waiting = submitted(model);
      const application = waiting[at % waiting.length] as ModelApplication;
      const outcome = isOpened ? ApplicationOutcome.OPEN : ApplicationOutcome.DECLINE;
      await whole.controls.decideApplication({ clientApplicationId: application.id, outcome }, callTimeout);
      application.state = isOpened ? 'opened' : 'rejected';
      await untilItIs(whole, application);
    },
  };
}

const submitted = ({ applications }: Pick<PartnerModel, 'applications'>) =>
  applications.filter(({ state }) => state === 'submitted');

/** Waits until an application is as the model has it. One that is opened has an account, which is the partner's. */
function untilItIs(whole: Whole, { id, state }: ModelApplication): Promise<void> {
  return eventually(async () => {
    const { body } = await ask(whole, 1, 'GET', `/v1/applications/${id}`);
    assert.equal(body.state, state, id);
    if (state !== 'opened') return;
    const account = await ask(whole, 0, 'GET', `/v1/accounts/${body.account}`);
    assert.deepEqual([account.status, account.body.application], [200, id]);
  }, boundMs);
}

/** Compares the partner's applications and the documents that the broker has with the model. */
export async function assertApplications({ applications }: PartnerModel, whole: Whole): Promise<void> {
  const { body: list } = await ask(whole, 1, 'GET', '/v1/applications?limit=100');
  const shown = list.data.map(({ id, state }: ModelApplication) => [id, state]);
  const newestFirst = applications.map(({ id, state }) => [id, state]).reverse();
  assert.deepEqual(shown, newestFirst, 'the applications, newest first');
  for (const { id, state, documents } of applications) {
    const { body } = await ask(whole, 0, 'GET', `/v1/applications/${id}/documents`);
    const types = body.data.map(({ type }: { type: string }) => type);
    assert.deepEqual(types, [...documents.keys()], `the documents of ${id}`);
    const { applications: found } = await whole.controls.listApplications({ clientApplicationId: id }, callTimeout);
    const times = found.map(({ timesReceived }) => timesReceived);
    const isThere = state !== 'refused' && state !== 'unplaced';
    // The simulator keeps no record of an application that it rejects at once.
    if (isThere && (state !== 'rejected' || times.length > 0))
      assert.deepEqual(times, [1], `the broker got ${id} once`);
    const delivered = found.flatMap((one) => one.documents).filter((document) => document.delivered);
    assert.equal(delivered.length, documents.size, `the documents of ${id} that the broker has`);
  }
}

const pick = fc.array(fc.nat(1_000), { minLength: 3, maxLength: 3 });
const placed = fc
  .tuple(fc.constantFrom('Okafor', ...Object.keys(ends)), fc.nat(1))
  .map(([lastName, replica]) => apply(lastName, replica));

/** The commands of applications and their documents. */
export const applicationCommands = [
  placed,
  ...[pick, pick, pick, pick].map((each) => each.map(sendDocument)),
  pick.map(decide),
];
