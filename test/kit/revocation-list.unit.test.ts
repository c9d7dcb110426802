/** The dates of a list of revoked certificates, over lists that are written byte by byte. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { datesOfList } from '../../src/kit/revocation-list.ts';

const tags = { integer: 0x02, utcTime: 0x17, generalizedTime: 0x18, sequence: 0x30 };

/** An element of DER with its length in the shortest form. */
function element(tag: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content as string, 'latin1');
  const { length } = bytes;
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), bytes]);
}

const sequence = (...members: readonly Buffer[]) => element(tags.sequence, Buffer.concat(members));
const utc = (text: string) => element(tags.utcTime, text);
const general = (text: string) => element(tags.generalizedTime, text);
const [version, algorithm, issuer] = [element(tags.integer, '\x01'), sequence(), sequence()];
const entries = sequence(sequence(element(tags.integer, '\x05'), utc('300101000000Z')));

function pemOf(list: Buffer): string {
  const lines = list.toString('base64').replace(/.{64}/g, '$&\n');
  return `-----BEGIN X509 CRL-----\n${lines}\n-----END X509 CRL-----\n`;
}

/** A list with these members in its first part. */
const listOf = (...members: readonly Buffer[]) => pemOf(sequence(sequence(...members), algorithm));
const from = Date.UTC(2026, 2, 4, 5, 6, 7);
const fromText = utc('260304050607Z');

describe('the dates of a revocation list', () => {
  it('the dates of a list are those after its issuer, with a version or without, and the end is optional', () => {
    const until = Date.UTC(2026, 3, 4, 5, 6, 7);
    const untilText = utc('260404050607Z');
    for (const [list, dates] of [
      [listOf(version, algorithm, issuer, fromText, untilText, entries), { from, until }],
      [listOf(algorithm, issuer, fromText, untilText, entries), { from, until }],
      [listOf(version, algorithm, issuer, fromText, untilText), { from, until }],
      [listOf(version, algorithm, issuer, fromText, entries), { from, until: undefined }],
      [listOf(version, algorithm, issuer, fromText), { from, until: undefined }],
    ] as const) {
      assert.deepEqual(datesOfList(list), dates);
    }
  });

  it('dates of a list have years from 1950 to 2049 if they have two digits, and any year if they have four', () => {
    for (const [text, at] of [
      [utc('500101000000Z'), Date.UTC(1950, 0, 1)],
      [utc('991231235959Z'), Date.UTC(1999, 11, 31, 23, 59, 59)],
      [utc('000101000000Z'), Date.UTC(2000, 0, 1)],
      [utc('491231235959Z'), Date.UTC(2049, 11, 31, 23, 59, 59)],
      [general('20500101000000Z'), Date.UTC(2050, 0, 1)],
      [general('19490304050607Z'), Date.UTC(1949, 2, 4, 5, 6, 7)],
    ] as const) {
      assert.equal(datesOfList(listOf(version, algorithm, issuer, text)).from, at);
    }
  });

  it('the dates of a list are found whatever its length', () => {
    for (const bytes of [100, 127, 128, 200, 255, 256, 5_000]) {
      const name = sequence(element(0x0c, 'a'.repeat(bytes)));
      assert.equal(datesOfList(listOf(version, algorithm, name, fromText, entries)).from, from, `${bytes}`);
    }
  });
});

describe('a text that is no revocation list', () => {
  it('what is no list of revoked certificates is refused, whatever it is instead', () => {
    const whole = sequence(sequence(version, algorithm, issuer, fromText, entries), algorithm);
    for (const [name, list] of [
      ['nothing', ''],
      ['no DER', pemOf(Buffer.from('plain text'))],
      ['a number', pemOf(element(tags.integer, '\x01'))],
      ['a list without its first part', pemOf(sequence())],
      ['a list with a number as its first part', pemOf(sequence(version))],
      ['a list without a time', listOf(version, algorithm, issuer, entries)],
      ['a list that is cut', pemOf(whole.subarray(0, whole.length - 1))],
      ['an element that is longer than its list', listOf(version, algorithm, Buffer.from([tags.sequence, 5, 0]))],
      ['a time without seconds', listOf(version, algorithm, issuer, utc('2603040506Z'))],
      ['a time of another zone', listOf(version, algorithm, issuer, utc('260304050607+0100'))],
      ['a time with letters', listOf(version, algorithm, issuer, utc('26030405060aZ'))],
      ['a year with two digits where four belong', listOf(version, algorithm, issuer, general('260304050607Z'))],
      ['an end without seconds', listOf(version, algorithm, issuer, fromText, utc('2603040506Z'))],
    ] as const) {
      assert.throws(() => datesOfList(list), Error, name);
    }
  });
});
