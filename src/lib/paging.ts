import { createHmac, timingSafeEqual } from 'node:crypto';
import { ApiError } from './errors.ts';

const tagLength = 16;

/**
 * Makes and reads cursors. A cursor holds a position and a tag over the position and what it was issued for (the list,
 * the partner, the filters), so that one from elsewhere, or a made-up one, is refused. The same position always makes
 * the same cursor.
 */
export class Cursors {
  constructor(private readonly key: Buffer) {}

  issue(issuedFor: readonly string[], position: string): string {
    const bytes = Buffer.from(position);
    return Buffer.concat([this.#tag(issuedFor, bytes), bytes]).toString('base64url');
  }

  /** The position in a cursor. Throws `invalid_request` when it was not issued for this. */
  read(issuedFor: readonly string[], cursor: string): string {
    const bytes = Buffer.from(cursor, 'base64url');
    const tag = bytes.subarray(0, tagLength);
    const position = bytes.subarray(tagLength);
    const isOurs =
      bytes.length > tagLength &&
      bytes.toString('base64url') === cursor &&
      timingSafeEqual(tag, this.#tag(issuedFor, position));
    if (isOurs) return position.toString();
    throw new ApiError('invalid_request', {
      param: 'cursor',
      message: '`cursor` was not issued for this list and these filters. Start again without it.',
    });
  }

  /**
   * A page of a list of which one more than `limit` was read, with the cursor for the next page. `positionOf` is what a
   * cursor says of a row.
   */
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

  #tag(issuedFor: readonly string[], position: Buffer): Buffer {
    const hmac = createHmac('sha256', this.key);
    hmac.update(JSON.stringify(issuedFor)).update(position);
    return hmac.digest().subarray(0, tagLength);
  }
}
