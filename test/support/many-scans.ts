import { endOfImage, segment, startOfImage } from './jpeg-maker.ts';

/** A large grey progressive JPEG: a scan for its brightness, and one for each of its further 63 coefficients. */
export function makeManyScans(behindScan: (scan: number) => Buffer = () => Buffer.alloc(0)): Buffer {
  const [width, height] = [3_200, 1_984];
  const size = Buffer.from([8, 0, 0, 0, 0, 1, 1, 0x11, 0]);
  size.writeUInt16BE(height, 1);
  size.writeUInt16BE(width, 3);
  const brightness = Buffer.alloc((width * height) / 64 / 8);
  return Buffer.concat([
    startOfImage,
    segment(0xdb, Buffer.from([0]), Buffer.alloc(64, 8)),
    segment(0xc2, size),
    // Its only code, of one zero bit, is that of no difference.
    segment(0xc4, Buffer.from([0x00, 1]), Buffer.alloc(15), Buffer.from([0])),
    // Its only code, of one zero bit, is that of at least 16,384 blocks without this coefficient.
    segment(0xc4, Buffer.from([0x10, 1]), Buffer.alloc(15), Buffer.from([0xe0])),
    segment(0xda, Buffer.from([1, 1, 0, 0, 0, 0])),
    brightness,
    behindScan(0),
    ...Array.from({ length: 63 }, (_, index) => index + 1).flatMap((coefficient) => [
      segment(0xda, Buffer.from([1, 1, 0, coefficient, coefficient, 0])),
      emptyBlocks,
      behindScan(coefficient),
    ]),
    endOfImage,
  ]);
}

/** 4 runs of 24,800 blocks: each a zero bit, and in 14 bits how many blocks more than 16,384. */
const emptyBlocks = Buffer.from(
  `${`0${(24_800 - 16_384).toString(2).padStart(14, '0')}`.repeat(4)}1111`
    .match(/.{8}/g)
    ?.map((byte) => Number.parseInt(byte, 2)) ?? [],
);
