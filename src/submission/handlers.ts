import { createHmac } from 'node:crypto';
import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { Call } from '../auth/call.ts';
import type { Database } from '../db/database.ts';
import { RowReader } from '../db/gathering.ts';
import { type SqlValue, statement } from '../db/statement.ts';
import type { Selection } from '../db/table.ts';
import { ApiError, type ErrorCode } from '../lib/errors.ts';
import type { Cursors } from '../lib/paging.ts';
import type { CreatedKind } from './kind.ts';
import type { Submitter } from './submit.ts';
import type { Submission } from './table.ts';

/** What the operations on every kind of object need from the rest of the gateway. */
export interface SubmissionHandlerParts {
  readonly database: Database;
  readonly submitter: Submitter;
  readonly cursors: Cursors;
  /** Keys the digests by which a repeated request is compared. */
  readonly digestKey: Buffer;
}

interface ListRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The operations that every kind of object has: create, get, list. */
export function submissionHandlers<
  Row extends Submission,
  Report,
  Schema extends DescMessage,
  Facts,
  Shown extends { readonly id: string },
  Message,
>(
  { database, submitter, cursors, digestKey }: SubmissionHandlerParts,
  kind: CreatedKind<Row, Report, MessageShape<Schema>, Facts>,
  {
    request: requestSchema,
    shown,
    toMessage,
    notFound,
  }: {
    readonly request: Schema;
    readonly shown: Selection<Shown>;
    /** The object as partners see it. */
    readonly toMessage: (row: Shown) => Message;
    readonly notFound: ErrorCode;
  },
) {
  const { table } = kind;
  const reader = new RowReader(database, table.name, shown.list);

  async function create(request: MessageShape<Schema>, call: Call): Promise<Message> {
    const { row, replayed } = await submitter.submit(kind, {
      origin: call.origin,
      idempotencyKey: call.idempotencyKey ?? '',
      digest: requestDigest(digestKey, requestSchema, request),
      request,
      permission: call.permission,
      log: () => call.log,
    });
    call.reply.replayed = replayed;
    return toMessage(row as unknown as Shown);
  }

  /** Another partner's object is found exactly as little, and as fast, as one that does not exist. */
  async function find(id: string | undefined, { caller }: Call): Promise<Shown> {
    const row = await reader.read(caller.partnerId, id ?? '');
    if (row === undefined) throw new ApiError(notFound);
    return shown.read(row);
  }

  /** A page of a partner's objects, newest first. A filter that is undefined lets all pass. */
  async function list(
    { limit = 25, cursor }: ListRequest,
    filters: { readonly [Field in keyof Row]?: unknown } & { readonly updatedSince?: number | undefined },
    { caller: { partnerId } }: Call,
  ) {
    const issuedFor = [table.name, partnerId, ...(Object.keys(filters).length > 0 ? [JSON.stringify(filters)] : [])];
    const before = cursor === undefined ? undefined : cursors.read(issuedFor, cursor);
    const { updatedSince, ...rest } = filters;
    const equal = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
    const more: [string, SqlValue][] = [];
    if (updatedSince !== undefined) more.push(['AND updated_at >= ?', new Date(updatedSince)]);
    if (before !== undefined) more.push(['AND id < ?', before]);
    const sql = [...more.map(([condition]) => condition), `ORDER BY id DESC LIMIT ${limit + 1}`].join(' ');
    const tail = statement(sql, ...more.map(([, value]) => value));
    const rows = await database.read(table.find({ partnerId, ...equal } as never, shown, tail));
    const page = cursors.page(issuedFor, rows.map(shown.read), limit, ({ id }) => id);
    return { ...page, data: page.data.map(toMessage) };
  }

  return { create, find, get: async ({ id }: { id?: string }, call: Call) => toMessage(await find(id, call)), list };
}

/**
 * Tells two requests apart without keeping them: a keyed digest of the message after defaults and upper-casing. Fields
 * of a later version that we do not know do not count, because we would not act on them.
 */
function requestDigest<Schema extends DescMessage>(key: Buffer, schema: Schema, message: MessageShape<Schema>): Buffer {
  return createHmac('sha256', key)
    .update(schema.typeName)
    .update(toBinary(schema, message, { writeUnknownFields: false }))
    .digest();
}
