import assert from 'node:assert/strict';
import { retagged } from '../altered-bytes.ts';
import type { Wording } from '../desk.ts';
import type { Habit } from '../habit.ts';
import { fillWhileAway } from '../numbers.ts';

/** How messages are written, and messages that cannot be read. */
export const byteHabits: readonly Habit[] = [
  {
    name: 'the exchange writes byte by byte',
    why: 'a slow line',
    expect: 'quiet',
    manners: () => ({
      write: (bytes, socket) => {
        for (const byte of bytes) socket.write(Buffer.of(byte));
      },
    }),
  },
  {
    name: 'the exchange writes many messages in one packet',
    why: 'a busy line',
    expect: 'quiet',
    orders: [{}, { quantity: 50 }],
    manners: () => {
      let waiting: Buffer[] = [];
      return {
        write: (bytes, socket) => {
          waiting.push(bytes);
          if (waiting.length > 1) return;
          setImmediate(() => {
            socket.write(Buffer.concat(waiting));
            waiting = [];
          });
        },
      };
    },
    onOrder: (desk) => {
      desk.accept().trade(10);
      for (let part = 0; part < 20; part += 1) desk.trade(2);
    },
  },
  {
    name: 'the exchange writes half a fill, and the line breaks',
    why: 'lines break anywhere',
    expect: 'quiet',
    script: async ({ desk, acceptor, sees, chain }) => {
      await sees('pending');
      (await desk()).trade(100, { how: { bytes: (whole) => whole.subarray(0, 60) } });
      acceptor.close();
      await chain.up();
    },
  },
  ...[7, 16].map(
    (digits): Habit => ({
      name: `the exchange pads BodyLength to ${digits} digits`,
      why: 'a header of fixed width',
      expect: 'quiet',
      manners: () => ({ delivery: { envelope: { bodyLength: (length) => String(length).padStart(digits, '0') } } }),
      script: fillWhileAway,
    }),
  ),
  ...(
    [
      [
        'an EncodedTextLen that counts characters',
        {
          also: [
            [354, '3'],
            [355, 'ñññ'],
          ],
        },
      ],
      [
        'a data field of its own with a separator inside',
        {
          also: [
            [5001, '7'],
            [5002, 'a\u0001b=c\u0001d'],
          ],
        },
      ],
      ['a separator inside Text', { 58: 'one\u0001two' }],
      ['70,000 bytes of Text', { 58: 'x'.repeat(70_000) }],
      ['a wrong CheckSum', { how: { envelope: { checkSum: () => '000' } } }],
      ['a BodyLength that is too short', { how: { envelope: { bodyLength: (length) => String(length - 5) } } }],
      ['a BodyLength that is too long', { how: { envelope: { bodyLength: (length) => String(length + 5) } } }],
      ['a SendingTime of the year before', { how: { sentAt: Date.now() - 365 * 86_400_000 } }],
      ['PossDupFlag, and no OrigSendingTime', { how: { header: [[43, 'Y']] } }],
      [
        'another TargetCompID',
        {
          how: { bytes: (whole) => Buffer.from(whole.toString('latin1').replace('56=MARINA', '56=NIRAMA'), 'latin1') },
        },
      ],
      ['a tag that is no number', { how: { bytes: (whole) => retagged(whole, '59=0', 'ab=0') } }],
      ['a field without a value', { 58: '' }],
      ['a tag 0', { how: { bytes: (whole) => retagged(whole, '59=0', '00=0') } }],
    ] satisfies readonly (readonly [string, Wording])[]
  ).map(
    ([what, said]): Habit => ({
      name: `the exchange sends a fill with ${what}`,
      why: 'no two engines agree on what can be read',
      expect: 'safe',
      orders: [{}, { quantity: 50 }],
      script: async ({ desk, acceptor, sees, chain }) => {
        await sees('pending', 0, 1);
        const logons = acceptor.received('A').length;
        (await desk(0)).trade(100, said);
        // The next message shows what became of that one.
        (await desk(1)).trade(50);
        await sees('filled', 50, 1);
        await chain.up();
        assert.ok(acceptor.received('A').length <= logons + 2, 'the session was opened again and again');
      },
    }),
  ),
];
