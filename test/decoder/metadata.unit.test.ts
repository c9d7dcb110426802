import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deflateSync } from 'node:zlib';
import { isWholePng } from '../../src/decoder/png-pixels.ts';
import { chunk, handmadePng } from '../support/images.ts';

/** The bytes that all metadata together may inflate to. */
const most = 8_000_000;

/** A compressed text that inflates to so many bytes. */
const text = (bytes: number) =>
  chunk('zTXt', Buffer.concat([Buffer.from('name\0\0', 'latin1'), deflateSync(Buffer.alloc(bytes))]));

const pngWith = (...bytes: readonly number[]) => handmadePng({ width: 8, height: 8, before: bytes.map(text) });

describe('the metadata of a PNG', () => {
  it('the metadata of a PNG may inflate to a bound in all its chunks together, and to no byte more', async () => {
    const eighths = Array.from({ length: 8 }, () => most / 8);
    assert.equal(await isWholePng(pngWith(...eighths)), true);
    await assert.rejects(isWholePng(pngWith(...eighths, 1)));
  });

  it('the metadata of a PNG may inflate to the bound in one chunk, and to no byte more', async () => {
    assert.equal(await isWholePng(pngWith(most)), true);
    await assert.rejects(isWholePng(pngWith(most + 1)));
  });
});
