import { timingSafeEqual } from 'node:crypto';
import { hmacUnder, type Keys } from '../../kit/key-ring.ts';
import { ApiError } from './errors.ts';

const tagLength = 16;

/**
 * Makes and reads cursors. A cursor holds a position and a tag over the position and its context (the list, the partner,
 * the filters), so a forged or foreign cursor is refused. Under one key the same position always makes the same cursor.
 */
export class Cursors {
  constructor(private readonly keys: Keys) {}

  issue(issuedFor: readonly string[], position: string): string {
    const bytes = Buffer.from(position);
    return Buffer.concat([tagOf(this.keys.all[0].key, issuedFor, bytes), bytes]).toString('base64url');
  }

  /** The position in a cursor. Throws `invalid_request` if it was not issued for this context. */
  read(issuedFor: readonly string[], cursor: string): string {
    const bytes = Buffer.from(cursor, 'base64url');
    const tag = bytes.subarray(0, tagLength);
    const position = bytes.subarray(tagLength);
    const isOurs =
      bytes.length >= tagLength &&
      bytes.toString('base64url') === cursor &&
      this.keys.all.some(({ key }) => timingSafeEqual(tag, tagOf(key, issuedFor, position)));
    if (isOurs) return position.toString();
    throw new ApiError('invalid_request', {
      param: 'cursor',
      message: '`cursor` was not issued for this list and these filters. Start again without it.',
    });
  }

  /** Makes a page from up to `limit` + 1 rows, with the next cursor. `positionOf` is a row's position in a cursor. */
  page<Row>(
    issuedFor: readonly string[],
    rows: readonly Row[],
    limit: number,
    positionOf: (row: Row) => string,
  ): { readonly data: Row[]; readonly hasMore: boolean; readonly nextCursor: string | undefined } {
    const data = rows.slice(0, limit);
    const last = data.at(-1);
    const hasMore = rows.length > limit;
    return {
      data,
      hasMore,
      nextCursor: hasMore && last !== undefined ? this.issue(issuedFor, positionOf(last)) : undefined,
    };
  }
}

function tagOf(key: Buffer, issuedFor: readonly string[], position: Buffer): Buffer {
  return hmacUnder(key).update(JSON.stringify(issuedFor)).update(position).digest().subarray(0, tagLength);
}
