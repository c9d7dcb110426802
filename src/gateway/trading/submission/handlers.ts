import { create, type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { KeyedDigest, type Keys } from '../../../kit/key-ring.ts';
import type { Call } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Cursors } from '../../edge/paging.ts';
import { RowReader } from '../../store/batcher.ts';
import type { Database } from '../../store/database.ts';
import type { Selection } from '../../store/table.ts';
import { storedFields } from '../shown-message.ts';
import type { CreatedKind } from './kind.ts';
import { readPage } from './list.ts';
import type { Submitter } from './submit.ts';
import type { Submission } from './table.ts';

/** The parts of the gateway that the operations on every kind need. */
export interface SubmissionHandlerParts {
  readonly database: Database;
  readonly submitter: Submitter;
  readonly cursors: Cursors;
  /** The keys of the digests by which a repeated request is compared. */
  readonly digestKeys: Keys;
}

/** The operations that every kind of object has: create, get, list. */
export function submissionHandlers<
  Row extends Submission,
  Shown extends { readonly id: string },
  Message,
  Create extends DescMessage,
  List extends DescMessage,
  Page extends DescMessage,
>(
  { database, submitter, cursors, digestKeys }: SubmissionHandlerParts,
  // biome-ignore lint/suspicious/noExplicitAny: a kind is only given reports of its own.
  kind: CreatedKind<Row, any, MessageShape<Create>>,
  /** Each field of the list request but `limit` and `cursor` is a filter. */
  [createSchema, listSchema, pageSchema]: readonly [create: Create, list: List, page: Page],
  shown: Selection<Shown>,
  toMessage: (row: Shown) => Message,
) {
  const { table } = kind;
  const reader = new RowReader(database, table.name, shown.list);

  async function createObject(request: MessageShape<Create>, call: Call): Promise<Message> {
    const { row, replayed } = await submitter.submit(kind, {
      origin: call.origin,
      keyId: call.caller.keyId,
      idempotencyKey: call.idempotencyKey ?? '',
      digest: requestDigest(digestKeys, createSchema, request),
      request,
      permission: call.permission,
      log: () => call.log,
    });
    call.reply.replayed = replayed;
    return toMessage(row as unknown as Shown);
  }

  /** Another partner's object gets the same answer, in the same time, as one that does not exist. */
  async function find(id: string | undefined, { caller }: Call): Promise<Shown> {
    const row = await reader.read(caller.partnerId, id ?? '');
    if (row === undefined) throw new ApiError(`${kind.name}_not_found`);
    return shown.read(row);
  }

  /** A page of a partner's objects, newest first. A filter that is not given lets all pass. */
  async function list(request: MessageShape<List>, { caller: { partnerId } }: Call): Promise<MessageShape<Page>> {
    const fields: Readonly<Record<string, unknown>> = storedFields(listSchema, request);
    const { limit, cursor, ...filters } = fields;
    const most = Number(limit ?? 25);
    const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== null));
    const issuedFor = [table.name, partnerId, ...(Object.keys(filters).length > 0 ? [JSON.stringify(given)] : [])];
    const { updatedSince, ...equal } = given;
    const listed = {
      equal: { partnerId, ...equal },
      updatedSince: updatedSince === undefined ? undefined : Number(updatedSince),
      before: cursor === null ? undefined : cursors.read(issuedFor, String(cursor)),
    };
    const rows = await readPage(database, kind, shown, listed, most + 1);
    const page = cursors.page(issuedFor, rows.map(shown.read), most, ({ id }) => id);
    return create(pageSchema, { ...page, data: page.data.map(toMessage) } as never);
  }

  /** A page of an object's history, oldest first. */
  async function history<Step extends { readonly sequence: number }>(
    { id = '', limit = 25, cursor }: { readonly id?: string; readonly limit?: number; readonly cursor?: string },
    call: Call,
    steps: Selection<Step>,
  ) {
    const { partnerId } = call.caller;
    const issuedFor = [`${kind.name}-history`, partnerId, id];
    const after = cursor === undefined ? 0 : Number(cursors.read(issuedFor, cursor));
    await find(id, call);
    const rows = await database.read(kind.history.page(partnerId, id, after, limit + 1));
    return cursors.page(issuedFor, rows.map(steps.read), limit, ({ sequence }) => String(sequence));
  }

  const get = async ({ id }: { id?: string }, call: Call) => toMessage(await find(id, call));

  return { create: createObject, find, get, list, history };
}

/**
 * A keyed digest of the message after defaults and upper-casing, to compare requests without keeping them. Fields
 * of a later version do not count, because this version would not act on them.
 */
function requestDigest<Schema extends DescMessage>(
  keys: Keys,
  schema: Schema,
  message: MessageShape<Schema>,
): KeyedDigest {
  return new KeyedDigest(keys, (hmac) =>
    hmac.update(schema.typeName).update(toBinary(schema, message, { writeUnknownFields: false })),
  );
}
