import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MsgHdrsImpl } from 'nats';
import { fc } from '../support/properties.ts';
import { badHeaders, manyHeaders } from '../support/raw-nats.ts';

/** The library's own reader, which the module replaces when it is loaded. */
const readByLibrary = MsgHdrsImpl.decode;
const { flawOf, maxHeaderBytes, readHeaders } = await import('../../src/kit/nats-headers.ts');

const part = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(':', 'a', 'A', 'b-c', '__proto__', ' ') },
  fc.constantFrom('\r', '\n', '\ufeff', '\u00e9', '-1', '0', '503'),
  fc.string({ maxLength: 4 }),
  fc.string({ unit: 'binary', maxLength: 2 }),
);
const line = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(''));
const firstLine = fc.oneof(fc.constantFrom('NATS/1.0', 'NATS/1.0 100 Idle Heartbeat', 'NATS/1.0 503'), line);
/** Text that often is headers, or nearly so. */
const nearlyHeaders = fc.tuple(firstLine, fc.array(line, { maxLength: 5 })).map(([first, lines]) => {
  return Buffer.from([first, ...lines, '', ''].join('\r\n'));
});

function byLibrary(bytes: Uint8Array): MsgHdrsImpl | undefined {
  try {
    return readByLibrary(bytes);
  } catch {
    return undefined;
  }
}

describe('the headers of a message from NATS', () => {
  it('are read as nats.js reads them, and are nonsense where it throws', () => {
    let [read, refused] = [0, 0];
    const check = (bytes: Uint8Array) => {
      const expected = byLibrary(bytes);
      const head = readHeaders(bytes);
      assert.equal(flawOf(head), expected === undefined ? 'nonsense' : undefined);
      if (expected === undefined) {
        refused += 1;
        assert.deepEqual([head.size(), head.code, head.description], [0, 0, '']);
        return;
      }
      read += head.size();
      assert.deepEqual([...head], [...expected]);
      // The library takes '-0' for a number, too.
      assert.deepEqual([head.code, head.description], [expected.code + 0, expected.description]);
    };
    const anyBytes = fc.uint8Array({ maxLength: 200 });
    fc.assert(fc.property(fc.oneof(nearlyHeaders, anyBytes), check), { numRuns: 5_000 });
    assert.ok(read > 100 && refused > 100, `${read} headers were read, ${refused} blocks refused`);
  });

  it('are read if they are of NATS, JetStream or its buckets', () => {
    const status = readHeaders(
      Buffer.from('NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Messages: 3\r\n\r\n'),
    );
    assert.deepEqual([status.code, status.description], [409, 'Message Size Exceeds MaxBytes']);
    assert.equal(status.get('Nats-Pending-Messages'), '3');
    const entry = readHeaders(
      Buffer.from('NATS/1.0\r\nKV-Operation: PURGE\r\nNats-Rollup: sub\r\nA: 1\r\nA: 2\r\n\r\n'),
    );
    assert.deepEqual(entry.toRecord(), { 'KV-Operation': ['PURGE'], 'Nats-Rollup': ['sub'], A: ['1', '2'] });
    assert.equal(readHeaders(Buffer.from('NATS/1.0 503\r\n\r\n')).code, 503);
  });

  for (const [name, bytes] of Object.entries(badHeaders)) {
    it(`are not read with ${name}, and nothing is thrown`, () => {
      assert.equal(flawOf(readHeaders(bytes)), bytes.length > maxHeaderBytes ? 'too_large' : 'nonsense');
    });
  }

  it('are read up to 2 KiB', () => {
    const largest = manyHeaders(maxHeaderBytes);
    const padded = Buffer.concat([
      largest.subarray(0, -4),
      Buffer.alloc(maxHeaderBytes - largest.length, ' '),
      largest.subarray(-4),
    ]);
    assert.equal(padded.length, maxHeaderBytes);
    assert.equal(flawOf(readHeaders(padded)), undefined);
    assert.equal(readHeaders(padded).size(), byLibrary(padded)?.size());
    assert.equal(flawOf(readHeaders(Buffer.concat([padded, Buffer.from(' ')]))), 'too_large');
  });

  it('cost the same however large they are', () => {
    const huge = manyHeaders(1024 * 1024);
    const startedAt = process.cpuUsage();
    for (let time = 0; time < 1_000; time += 1) assert.equal(flawOf(MsgHdrsImpl.decode(huge)), 'too_large');
    const { user, system } = process.cpuUsage(startedAt);
    assert.ok(user + system < 1_000_000, `${user + system} µs for 1,000 MB`);
  });

  it('are absent for a message without any', () => {
    assert.equal(flawOf(undefined), undefined);
  });
});
