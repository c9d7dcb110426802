import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';
import { Decoder, DecoderFailure, isUsedUp } from '../../src/decoder/decoder.ts';
import { patient } from '../support/patience.ts';

/** Programs that a file has taken over, by what they write once they have it. */
const takenOver = {
  'a line that is no answer': 'nonsense\\n',
  'a line without an end': 'x'.repeat(500),
  'an answer with something before it': 'nonsense\\nwhole 1 1\\n',
};

describe('a decoder that a file has taken over', () => {
  for (const [says, written] of Object.entries(takenOver)) {
    it(`a decoder that wrote ${says} gets no other file, and what it wrote is the verdict of none`, async () => {
      // It answers each further file that it gets as whole.
      const code = `let count = 0; process.stdout.write('ready\\n'); process.stdin.on('data', () => {
        count += 1; process.stdout.write(count === 1 ? '${written}' : 'whole 1 1\\n'); });`;
      const program = { args: ['--eval', code], folder: tmpdir(), reads: [] };
      const decoder = new Decoder({ walls: () => undefined, decodeMs: patient(5_000), program });
      try {
        for (let files = 0; files < 3; files += 1) {
          await assert.rejects(
            decoder.check({ file: Buffer.alloc(10), mediaType: 'image/png' }),
            (error: unknown) => error instanceof DecoderFailure && error.failure === 'died',
          );
        }
      } finally {
        decoder.end();
      }
    });
  }
});

/**
 * A decoder whose program is told by each file what to do: `RESIDENT CPU` are its answer's numbers, with `large` it
 * holds 300 MB and says nothing of them, `end` ends it, with `work` it works for ever, and with anything else it never answers. It finds the first file whole and all others damaged, so that a test knows a process that is new.
 */
function toldDecoder(decodeMs: number) {
  const code = `let count = 0; process.stdout.write('ready\\n'); let got = '';
    process.stdin.on('data', (bytes) => {
      got += bytes.toString('latin1');
      const at = got.indexOf('image/png');
      if (at < 0 || !got.endsWith(';')) return;
      let told = got.slice(at + 9, -1);
      got = '';
      if (told === 'large') told = Buffer.alloc(300_000_000, 1).subarray(0, 1)[0] + ' 1';
      if (told === 'end') process.exit(3);
      while (told === 'work');
      count += 1;
      if (/^\\d+ \\d+$/.test(told)) process.stdout.write((count === 1 ? 'whole ' : 'damaged ') + told + '\\n');
    });`;
  const program = { args: ['--eval', code], folder: tmpdir(), reads: [] };
  const decoder = new Decoder({ walls: () => undefined, decodeMs, program });
  const check = (told: string) => decoder.check({ file: Buffer.from(`${told};`), mediaType: 'image/png' });
  /** How a file fails. */
  const failure = (told: string) =>
    check(told).then(
      () => assert.fail('the file was decoded'),
      (error: unknown) => (error instanceof DecoderFailure ? error.failure : String(error)),
    );
  return { decoder, check, failure };
}

describe('a decoder from file to file', () => {
  it('a decoder is replaced once it has held over 250 MB or has worked over 240 s, and not at these bounds', () => {
    for (const [heldBytes, cpuMs, expected] of [
      [1, 1, false],
      [250_000_000, 240_000, false],
      [250_000_001, 1, true],
      [1, 240_001, true],
    ] as const) {
      assert.equal(isUsedUp(heldBytes, cpuMs), expected, `${heldBytes} bytes, ${cpuMs} ms`);
    }
  });

  it('a decoder is one process for many files, until it has held too much, whatever it says of that, or says that it has worked too long', async (t) => {
    const { decoder, check } = toldDecoder(patient(5_000));
    t.after(() => decoder.end());
    const isNew: boolean[] = [];
    // Its own figure may be that of the process that started it.
    for (const told of ['1 1', '250000000 240000', '250000001 1', 'large', '1 1', '1 240001', '1 1', '1 1']) {
      isNew.push(await check(told));
    }
    assert.deepEqual(isNew, [true, false, false, false, true, false, true, false]);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    for (let files = 0; files < 12; files += 1) assert.equal(await check('1 1'), false);
    process.off('warning', onWarning);
    assert.deepEqual(warnings, [], 'no listener is left for each file');
  });

  it('a decoder that dies or takes too long fails its file alone, any number of times, and the next file has a new process', async (t) => {
    const { decoder, check, failure } = toldDecoder(1_200);
    t.after(() => decoder.end());
    for (const [told, expected] of [
      ['end', 'died'],
      ['end', 'died'],
      ['work', 'late'],
    ] as const) {
      assert.equal(await check('1 1'), true);
      assert.equal(await failure(told), expected);
    }
    assert.equal(await check('1 1'), true);
    assert.equal(await check('1 1'), false);
  });

  it('a decoder that has replaced one that was killed is used for the next file, also when the end of that one is heard later', async (t) => {
    const { decoder, check, failure } = toldDecoder(patient(300));
    t.after(() => decoder.end());
    assert.equal(await failure('no answer'), 'late');
    assert.equal(await check('1 1'), true, 'a new process');
    for (let files = 0; files < 3; files += 1) assert.equal(await check('1 1'), false, 'the same process');
  });

  it('a decoder takes one file at a time, fails the one that it has at its end, and takes none after it', async () => {
    const { decoder, check, failure } = toldDecoder(patient(10_000));
    assert.equal(await check('1 1'), true);
    const first = check('1 1');
    assert.match(await failure('1 1'), /one file at a time/);
    assert.equal(await first, false, 'the other one did not disturb it');
    const last = failure('no answer');
    decoder.end();
    assert.equal(await last, 'died');
    assert.match(await failure('1 1'), /until its end/);
  });

  it('a decoder that ends before it can take a file was not started, each time', async (t) => {
    const program = { args: ['--eval', 'process.exit(0)'], folder: tmpdir(), reads: [] };
    const decoder = new Decoder({ walls: () => undefined, decodeMs: patient(5_000), program });
    t.after(() => decoder.end());
    for (let times = 0; times < 2; times += 1) {
      await assert.rejects(
        decoder.check({ file: Buffer.alloc(10), mediaType: 'image/png' }),
        (error: unknown) => error instanceof DecoderFailure && error.failure === 'not started',
      );
    }
  });
});
