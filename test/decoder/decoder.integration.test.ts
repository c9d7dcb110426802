import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';
import { Decoder, DecoderFailure } from '../../src/decoder/decoder.ts';
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
