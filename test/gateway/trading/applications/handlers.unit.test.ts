/** The operations on applications and documents, with a database, a checker of images and a sender that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { Cursors } from '../../../../src/gateway/edge/paging.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import { applicationHandlers } from '../../../../src/gateway/trading/applications/handlers.ts';
import { applications } from '../../../../src/gateway/trading/applications/table.ts';
import { DocumentType } from '../../../../src/gen/marina/gateway/v1/documents_pb.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import { applicationKind } from '../../../support/kinds.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { storedRow } from '../../../support/stored-row.ts';

const keys = onlyKey(Buffer.alloc(32, 1));
/** 00:30 in Lagos on 3 March, and still 2 March in UTC. */
const now = Date.parse('2026-03-03T00:30:00+01:00');
const refusal = (code: string) => new ApiError(code as 'rate_limited');

type Step =
  | 'state'
  | 'room'
  | 'file'
  | 'permission'
  | 'second room'
  | 'headers'
  | 'digest'
  | 'found'
  | 'decode'
  | 'send';

/** Sends a document. Returns each step that was done, and the answer or the code of the refusal. */
async function send(at: Partial<Record<Step, string>> = {}, delivered = false) {
  const done: Step[] = [];
  const step = (name: Step) => {
    const code = at[name];
    if (code !== undefined && name !== 'state') throw refusal(code);
    done.push(name);
  };
  const stored = { ...plainOrder, id: 'app_a', partnerId: 'par_a', reference: null, account: null, param: null };
  const row = { ...stored, evidence: '', state: at.state ?? 'documents_required' };
  const answer = ({ values }: Statement) =>
    values.flat(3).includes('par_a') && values.flat(3).includes('app_a') ? [storedRow(applications, row as never)] : [];
  const document = { type: 'passport', state: 'delivered', size: 3, createdAt: now, updatedAt: now };
  const { sendDocument } = applicationHandlers({
    ...{
      kind: applicationKind,
      clock: { now: () => now, realNow: () => now },
      cursors: new Cursors(keys),
      digestKeys: keys,
    },
    database: {
      read: async (query: Statement) => answer(query),
      readAll: async (queries: readonly Statement[]) => queries.map(answer),
    },
    submitter: {},
    images: {
      checkRoom: () => step(done.includes('file') ? 'second room' : 'room'),
      readHeaders: () => step('headers'),
      decode: async () => step('decode'),
    },
    sender: {
      digestOf: () => step('digest'),
      findDelivered: async () => {
        step('found');
        return delivered ? document : undefined;
      },
      send: async () => {
        step('send');
        return document;
      },
    },
  } as never);
  const call = {
    ...{ caller: { partnerId: 'par_a' }, origin: { partnerId: 'par_a' } },
    permission: { renew: async () => step('permission') },
    receiveFile: async () => {
      step('file');
      return { mediaType: 'image/png', content: Buffer.from('abc') };
    },
  };
  const sent = sendDocument({ id: 'app_a', type: DocumentType.PHOTO } as never, call as never);
  const refused = await sent.then(() => undefined).catch((error: ApiError) => error.code ?? String(error));
  return { done, refused };
}

describe('a document that is sent', () => {
  const before: readonly Step[] = ['room', 'file', 'permission', 'second room', 'headers', 'digest', 'found'];

  it('a document that is sent is checked by what costs least first, decoded and sent', async () => {
    assert.deepEqual(await send(), { done: [...before, 'decode', 'send'], refused: undefined });
  });

  it('a document that is sent is not decoded or sent again if the broker has it', async () => {
    assert.deepEqual(await send({}, true), { done: [...before], refused: undefined });
  });

  it('a document that is sent is refused at each of these steps, and nothing behind it is done', async () => {
    for (const name of [...before, 'decode', 'send'] as const) {
      const { done, refused } = await send({ [name]: 'rate_limited' });
      assert.equal(refused, 'rate_limited', name);
      const all = [...before, 'decode', 'send'] as const;
      assert.deepEqual(done, all.slice(0, all.indexOf(name)), name);
    }
  });

  it('a document that is sent is not received for an application that takes no documents', async () => {
    for (const state of ['uncertain', 'opened', 'rejected', 'refused', 'unplaced']) {
      assert.deepEqual(await send({ state }), { done: [], refused: 'application_not_accepting_documents' }, state);
    }
    assert.equal((await send({ state: 'submitted' })).refused, undefined);
  });
});

describe('a date of birth', () => {
  it('a date of birth may be today in Lagos, and no later day', async () => {
    const made: unknown[] = [];
    const { createApplication } = applicationHandlers({
      ...{ kind: applicationKind, clock: { now: () => now, realNow: () => now }, cursors: {}, digestKeys: keys },
      ...{ database: {}, images: {}, sender: {} },
      submitter: {
        submit: async (_: unknown, { request }: { request: { dateOfBirth: string } }) => {
          made.push(request.dateOfBirth);
          throw new Error('submitted');
        },
      },
    } as never);
    const call = { caller: { partnerId: 'par_a', keyId: null }, origin: {}, reply: {} } as never;
    const apply = (dateOfBirth: string) =>
      createApplication({ $typeName: 'marina.gateway.v1.CreateApplicationRequest', dateOfBirth } as never, call);
    await assert.rejects(apply('2026-03-04'), { code: 'invalid_request', param: 'date_of_birth' });
    assert.deepEqual(made, []);
    await assert.rejects(apply('2026-03-03'), /submitted/);
    assert.deepEqual(made, ['2026-03-03']);
  });
});
