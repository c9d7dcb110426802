import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { status as rpc } from '@grpc/grpc-js';
import { ErrorAnswer, Marina, newKey, parseJson, signWebhook, verifyWebhook, writeJson } from '@marina/client';
import { errorAnswer } from '../../clients/typescript/src/errors.ts';
import { leavesUnknown, settles, waitBeforeRepeat } from '../../clients/typescript/src/retries.ts';
import { ApiError, catalogue, type ErrorCode } from '../../src/gateway/edge/errors.ts';
import { rpcStatus } from '../../src/gateway/edge/rpc.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { snakeCase } from '../../src/site/samples/names.ts';
import { clientFiles } from '../../src/tools/clients/files.ts';
import { fc } from '../support/properties.ts';

const root = join(import.meta.dirname, '../..');
const codes = Object.keys(catalogue) as ErrorCode[];
const creates = { method: 'POST', takesKey: true };
const makesKeys = { method: 'POST', takesKey: false };
const reads = { method: 'GET', takesKey: false };

function failure(code: ErrorCode) {
  const { status, retryAfterSeconds } = new ApiError(code);
  return { status, code, retryAfterSeconds };
}

/** Holds for every value there is of a kind. */
function forAll<T>(values: fc.Arbitrary<T>, check: (value: T) => void): void {
  fc.assert(fc.property(values, check));
}

describe('the clients', () => {
  it('are what the contract makes of them today: if not, run `make generate`', () => {
    for (const { path, text } of clientFiles()) assert.equal(readFileSync(path, 'utf8'), text, path);
  });

  it('have a method for each operation of REST', () => {
    const source = (name: string) => readFileSync(join(root, 'clients/python/src/marina', name), 'utf8');
    const [python, asyncPython] = [source('operations.py'), source('async_operations.py')];
    for (const { method, http } of gatewayOperations) {
      if (http === undefined) continue;
      assert.equal(typeof Marina.prototype[method.localName as keyof Marina], 'function', method.localName);
      assert.ok(python.includes(`    def ${snakeCase(method.localName)}(\n`), method.localName);
      assert.match(asyncPython, new RegExp(`^    (async )?def ${snakeCase(method.localName)}\\($`, 'm'));
    }
  });

  it('have the licence of the project, and one version', () => {
    const licence = readFileSync(join(root, 'LICENSE'), 'utf8');
    const { version } = JSON.parse(readFileSync(join(root, 'clients/typescript/package.json'), 'utf8'));
    const project = readFileSync(join(root, 'clients/python/pyproject.toml'), 'utf8');
    assert.equal(/^version = "(.+)"$/m.exec(project)?.[1], version);
    for (const name of ['typescript', 'python']) {
      assert.equal(readFileSync(join(root, 'clients', name, 'LICENSE'), 'utf8'), licence);
    }
  });

  it('send a request with a key again where the catalogue says so, and nowhere else', () => {
    for (const code of codes) {
      const repeats = waitBeforeRepeat(failure(code), creates, 1) !== undefined;
      const tooMany = new ApiError(code).status === 429;
      const expected =
        tooMany ||
        [rpc.UNAVAILABLE, rpc.INTERNAL].includes(rpcStatus(new ApiError(code))) ||
        code === 'document_in_flight';
      assert.equal(repeats, expected, code);
    }
  });

  it('send a request that cannot be repeated again only if nothing was done', () => {
    const repeated = codes.filter((code) => waitBeforeRepeat(failure(code), makesKeys, 1) !== undefined);
    assert.deepEqual(repeated, ['rate_limited', 'exchange_unavailable', 'trading_paused', 'exchange_error']);
    for (const status of [undefined, 408, 429, 502, 503, 504]) {
      assert.equal(waitBeforeRepeat({ status }, makesKeys, 1), undefined, String(status));
      assert.notEqual(waitBeforeRepeat({ status }, creates, 1), undefined, String(status));
    }
  });

  it('wait at least as long as is asked for, longer each time, and never longer than a bound', () => {
    forAll(
      fc.record({ drawn: fc.double({ min: 0, max: 1, noNaN: true }), attempt: fc.integer({ min: 1, max: 200 }) }),
      ({ drawn, attempt }) => {
        const asked = waitBeforeRepeat(failure('trading_paused'), creates, attempt, () => drawn) ?? 0;
        assert.ok(asked >= 30_000 && asked <= 37_500);
        const own = waitBeforeRepeat({}, reads, attempt, () => drawn) ?? 0;
        assert.ok(own >= 250 && own <= 10_000);
      },
    );
    const waits = [1, 2, 3, 4].map((attempt) => waitBeforeRepeat({}, reads, attempt, () => 1));
    assert.deepEqual(waits, [500, 1_000, 2_000, 4_000]);
  });

  it('treat codes and families that they do not know by their status', () => {
    assert.equal(waitBeforeRepeat({ status: 422, code: 'later' }, creates, 1), undefined);
    assert.equal(waitBeforeRepeat({ status: 503, code: 'later' }, creates, 1), undefined, 'it says no time');
    assert.notEqual(waitBeforeRepeat({ status: 503, code: 'later', retryAfterSeconds: 1 }, creates, 1), undefined);
    assert.notEqual(waitBeforeRepeat({ status: 504 }, creates, 1), undefined);
    const details = {
      ...{
        status: 418,
        type: 'constructor',
        code: 'later',
        message: 'A sentence.',
        docUrl: undefined,
        param: undefined,
      },
      ...{ rejectReason: undefined, location: undefined, requestId: undefined, retryAfterSeconds: undefined },
    };
    const call = { operation: 'createOrder', idempotencyKey: 'one', attempts: 1, isOutcomeUnknown: false };
    const error = errorAnswer(details, call);
    assert.equal(error.constructor, ErrorAnswer);
    assert.deepEqual([error.code, error.status, error.message, error.call], ['later', 418, 'A sentence.', call]);
  });

  it('know a family for each type of the catalogue', () => {
    const call = { operation: 'createOrder', idempotencyKey: undefined, attempts: 1, isOutcomeUnknown: false };
    const python = readFileSync(join(root, 'clients/python/src/marina/errors.py'), 'utf8');
    for (const code of codes) {
      const { type, status, message } = new ApiError(code);
      const rest = { docUrl: undefined, param: undefined, rejectReason: undefined, location: undefined };
      const details = { ...rest, status, type, code, message, requestId: undefined, retryAfterSeconds: undefined };
      const error = errorAnswer(details, call);
      assert.equal(snakeCase(error.constructor.name), type);
      // In Python a class of that name would hide one of the language.
      const name = type === 'permission_error' ? 'PermissionDeniedError' : error.constructor.name;
      assert.ok(python.includes(`    "${type}": ${name},`), type);
    }
  });

  it('say that an outcome is unknown only while something may have been done', () => {
    const unknown = codes.filter((code) => leavesUnknown(failure(code)));
    const expected = [
      'cancel_unconfirmed',
      'outcome_not_recorded',
      'internal_error',
      'service_unavailable',
      'document_unconfirmed',
    ];
    assert.deepEqual(unknown.toSorted(), expected.toSorted());
    for (const status of [408, 500, 502, 503, 504]) assert.ok(leavesUnknown({ status }), `a proxy's ${status}`);
    assert.ok(!leavesUnknown({ status: 404 }) && !leavesUnknown({ status: 408, code: 'later' }));
    for (const code of ['order_not_sent', 'order_rejected', 'duplicate_order'] as const)
      assert.ok(settles(failure(code)));
    for (const code of ['unauthorized', 'insufficient_scope', 'rate_limited', 'internal_error'] as const) {
      assert.ok(!settles(failure(code)), code);
    }
    assert.ok(!settles({}) && !settles({ status: 404 }));
  });
});

describe('the JSON of the client for TypeScript', () => {
  it('keeps every digit of every whole number', () => {
    const text = '{"sum":100000000000000007,"least":-9223372036854775808,"none":0,"list":[1,2.5,"3"]}';
    const value = parseJson(text);
    assert.deepEqual(value, { sum: 100_000_000_000_000_007n, least: -(2n ** 63n), none: 0n, list: [1n, 2.5, '3'] });
    assert.notEqual(JSON.stringify(JSON.parse(text)), text, 'the platform rounds it');
  });

  it('reads what it wrote, whatever is in it', () => {
    const letters = [
      '\ue000',
      '"',
      '\\',
      ':',
      ' ',
      '1',
      '-',
      'u',
      'e',
      '\u2028',
      '\ud800',
      '\u{1f600}',
      '\0',
      '\n',
      '{',
      ',',
    ];
    const text = fc.string({ unit: fc.constantFrom(...letters), maxLength: 8 });
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 2 },
        text,
        fc.bigInt(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(
          text.filter((name) => name !== '__proto__'),
          tie('value'),
          { maxKeys: 4, noNullPrototype: true },
        ),
      ),
    }));
    forAll(value, (each) => assert.deepEqual(parseJson(writeJson(each)), each));
  });

  it('is that of the platform, but for whole numbers', () => {
    const escaped = '{"a\\u0041\\ue000":"\\ue0001 \\"2\\"","b":[true,null,"\\\\"]}';
    assert.deepEqual(parseJson(escaped), JSON.parse(escaped));
    for (const wrong of ['', '{', '[1,]', '01', '{"a":1 2}', "{'a':1}", 'NaN', '1n']) {
      assert.throws(() => parseJson(wrong), SyntaxError, wrong);
    }
  });

  it('refuses a number that was rounded before it came', () => {
    for (const wrong of [2 ** 53, 0.5, Number.NaN]) assert.throws(() => writeJson({ amount_kobo: wrong }), RangeError);
    assert.equal(
      writeJson({ amount_kobo: 10n ** 17n + 7n, quantity: 100 }),
      '{"amount_kobo":100000000000000007,"quantity":100}',
    );
  });
});

describe('what a partner makes by himself', () => {
  it('is a key for each call, and a webhook for tests that verifies', async () => {
    assert.match(newKey(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const secret = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;
    const body = '{"id":"msg_1","version":9007199254740993}';
    const headers = await signWebhook(secret, 'msg_1', body);
    assert.equal((await verifyWebhook(secret, headers, body)).version, 9_007_199_254_740_993n);
    await assert.rejects(verifyWebhook('whsec_', headers, body), TypeError);
  });
});
