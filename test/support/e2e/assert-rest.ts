import assert from 'node:assert/strict';
import { contract, type Refusal } from './refusals.ts';
import type { WireAnswer } from './wire.ts';

/** The headers an answer has in addition to those that HTTP itself needs. */
const everyAnswer = ['cache-control', 'content-length', 'content-type', 'x-content-type-options', 'x-request-id'];
const ofHttp = ['connection', 'date', 'keep-alive'];

/** Asserts that a request was refused with exactly this, down to the last header and member. */
export function assertRestRefusal(answer: WireAnswer, refusal: Refusal, method: string): void {
  const [status, type] = contract[refusal.code];
  assert.equal(answer.status, status, answer.text);
  assertHeaders(answer, refusalHeaders(refusal));
  if (refusal.allow !== undefined) {
    const allowed = header(answer, 'allow')
      ?.split(',')
      .map((each) => each.trim());
    assert.deepEqual(allowed?.sort(), [...refusal.allow].sort());
  }
  if (method === 'HEAD') return;
  const { error, ...rest } = JSON.parse(answer.text);
  assert.deepEqual(rest, {});
  const { message, doc_url: docUrl, ...members } = error;
  assert.ok(typeof message === 'string' && message.length > 0, 'there is a message');
  assert.ok(URL.canParse(docUrl), 'there is a link to the description of the code');
  assert.deepEqual(members, {
    type,
    code: refusal.code,
    ...(refusal.param === undefined ? {} : { param: refusal.param }),
    ...(refusal.rejectReason === undefined ? {} : { reject_reason: refusal.rejectReason }),
  });
}

/** The headers a refusal has in addition to those of every answer. */
export function refusalHeaders({ code, location }: Refusal): Map<string, string | RegExp> {
  const [status, , retryAfter] = [...contract[code], undefined];
  const expected = new Map<string, string | RegExp>();
  if (retryAfter !== undefined) expected.set('retry-after', String(retryAfter));
  if (status === 401) expected.set('www-authenticate', /^Bearer\b/);
  if (status === 405) expected.set('allow', /./);
  if (location) {
    const path = /^\/v1\/(orders\/ord|applications\/app|allocations\/alc|withdrawals\/wdr)_[a-z2-7]{20}$/;
    expected.set('location', path);
  }
  return expected;
}

/** Asserts that an answer has the headers every answer has, those expected, and no others. */
export function assertHeaders(
  answer: WireAnswer,
  expected: ReadonlyMap<string, string | RegExp> = new Map(),
  contentType = 'application/json',
): void {
  for (const [name, values] of answer.headers) assert.equal(values.length, 1, `${name} stands once`);
  const names = [...answer.headers.keys()].filter((name) => !ofHttp.includes(name));
  assert.deepEqual(names.sort(), [...everyAnswer, ...expected.keys()].sort());
  assert.equal(header(answer, 'content-type'), contentType);
  assert.equal(header(answer, 'cache-control'), 'no-store');
  assert.equal(header(answer, 'x-content-type-options'), 'nosniff');
  assert.match(header(answer, 'x-request-id') ?? '', /./);
  for (const [name, value] of expected) {
    if (typeof value === 'string') assert.equal(header(answer, name), value);
    else assert.match(header(answer, name) ?? '', value);
  }
}

export function header(answer: WireAnswer, name: string): string | undefined {
  return answer.headers.get(name)?.[0];
}
