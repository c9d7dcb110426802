import { randomBytes } from 'node:crypto';
import { deflateSync, gzipSync } from 'node:zlib';
import sharp from 'sharp';
import type { MakeFile } from './good-images.ts';
import { chunk, handmadePng, layeredJpeg, noiseJpeg, noisePng, plain } from './images.ts';
import {
  endOfImage,
  exif,
  film,
  huaweiEnd,
  jfif,
  makeJpeg,
  multiPictureIndex,
  samsungTrailer,
  segment,
  startOfImage,
  xmp,
} from './jpeg-maker.ts';
import { beforeRestarts, betweenSegments, withoutScanEnd } from './jpeg-parts.ts';
import { makeManyScans } from './many-scans.ts';

const text = (value: string) => Buffer.from(value, 'latin1');
const join = (...parts: readonly Buffer[]) => Buffer.concat(parts);
const picture = makeJpeg({ width: 120, height: 80, before: [exif()] });
const indexed = makeJpeg({ before: [exif(), multiPictureIndex(2)] });
const png = await noisePng(64, 48);
const jpeg = await noiseJpeg(64, 48);
const zip = join(text('PK\x03\x04'), randomBytes(200), text('PK\x05\x06'), Buffer.alloc(18));

/** A file with one of its bytes changed. */
export function changed(file: Buffer, at: number, to = 0xff ^ (file[at] ?? 0)): Buffer {
  const copy = Buffer.from(file);
  copy[at] = to;
  return copy;
}

/** A JPEG whose frame says another size than its pixels have. */
function resized(file: Buffer, width: number, height: number): Buffer {
  const copy = Buffer.from(file);
  const frame = copy.indexOf(Buffer.from([0xff, 0xc0]));
  copy.writeUInt16BE(height, frame + 5);
  copy.writeUInt16BE(width, frame + 7);
  return copy;
}

const startOfScan = Buffer.from([0xff, 0xda]);

/** Where each scan of a JPEG begins. */
function scansOf(file: Buffer): number[] {
  const found: number[] = [];
  for (let at = file.indexOf(startOfScan); at !== -1; at = file.indexOf(startOfScan, at + 1)) found.push(at);
  return found;
}

/** A progressive JPEG that ends before one of its scans. */
async function endedBeforeScan(index: number): Promise<Buffer> {
  const file = await noiseJpeg(64, 64, { progressive: true });
  return join(file.subarray(0, scansOf(file).at(index)), endOfImage);
}

/** A progressive JPEG without one of its scans. */
async function withoutScan(index: number): Promise<Buffer> {
  const file = await noiseJpeg(64, 64, { progressive: true });
  const scans = scansOf(file);
  return join(file.subarray(0, scans[index]), file.subarray(scans[index + 1]));
}

/** A JPEG with its last scan repeated many times. */
async function manyScans(times: number): Promise<Buffer> {
  const file = await noiseJpeg(64, 64, { progressive: true });
  const scan = file.subarray(file.lastIndexOf(startOfScan), -2);
  return join(file.subarray(0, -2), ...new Array<Buffer>(times).fill(scan), endOfImage);
}

/** A JPEG without some bytes of its compressed pixels. */
function withoutPixels(file: Buffer, from: number, bytes: number): Buffer {
  const at = Math.floor(file.length * from);
  return join(file.subarray(0, at), file.subarray(at + bytes));
}

const frameOf = (code: number, ...bytes: readonly number[]) => segment(code, Buffer.from(bytes));

/** Files that claim to be a JPEG and are none, or not a whole one, or have something else behind it. */
export const badJpegs: Record<string, MakeFile> = {
  'a text': () => text('not an image'),
  'one byte': () => Buffer.from([0xff]),
  'random bytes': () => randomBytes(5_000),
  'a page that begins with the first bytes of a JPEG': () =>
    join(startOfImage, text('<html><script>alert(1)</script>')),
  'a PDF that holds a JPEG': () => join(text('%PDF-1.4\n'), jpeg),
  'a photograph whose trailer says that it begins between two bytes': () =>
    join(picture, text(`this is not a trailer: SEFTx[{"offset":0.5}]jxrs${String.fromCharCode(24, 0, 0, 0)}`)),
  'a GIF': () =>
    sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } })
      .gif()
      .toBuffer(),
  'a WebP': () =>
    sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } })
      .webp()
      .toBuffer(),
  'a TIFF': () =>
    sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } })
      .tiff()
      .toBuffer(),
  'an SVG': () => text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
  'a PNG': () => png,
  'a JPEG cut in the middle': () => picture.subarray(0, picture.length / 2),
  'a JPEG cut in the middle and ended': () => join(jpeg.subarray(0, jpeg.length / 2), endOfImage),
  'a JPEG cut in its last tenth and ended': () => join(jpeg.subarray(0, jpeg.length * 0.9), endOfImage),
  'a JPEG without its last block': () => makeJpeg({ missingBlocks: 1 }),
  'a JPEG without some bytes in the middle of its pixels': () => withoutPixels(picture, 0.6, 40),
  'a JPEG with zeros in place of its last pixels': () => join(picture.subarray(0, -200), Buffer.alloc(198), endOfImage),
  'a JPEG without its end': () => picture.subarray(0, -2),
  'a JPEG without its last byte': () => picture.subarray(0, -1),
  'a JPEG of headers only': () => join(jpeg.subarray(0, jpeg.indexOf(startOfScan)), endOfImage),
  'a JPEG of an Exif thumbnail only': () => join(startOfImage, exif(jpeg), endOfImage),
  'a JPEG that says it is higher than it is': () => resized(jpeg, 64, 56),
  'a JPEG that says it is 6,000 pixels wide and high': () => resized(jpeg, 6_000, 6_000),
  'a JPEG that says it is 65,535 pixels wide and high': () => resized(jpeg, 65_535, 65_535),
  'a JPEG 8,001 pixels wide': () => plain(8_001, 10).jpeg().toBuffer(),
  'a JPEG 8,001 pixels high': () => plain(10, 8_001).jpeg().toBuffer(),
  'a JPEG of no width': () => resized(jpeg, 0, 48),
  'a JPEG whose height comes later': () =>
    makeJpeg({ saidHeight: 0, behindFirst: [segment(0xdc, Buffer.from([0, 24]))] }),
  'a JPEG with a restart marker missing': () =>
    makeJpeg({ restartInterval: 2, restartNumber: (number) => (number === 1 ? undefined : number) }),
  'a JPEG with its restart markers in the wrong order': () =>
    makeJpeg({ restartInterval: 1, restartNumber: (number) => number + 1 }),
  'a JPEG cut at a restart marker and ended': () => {
    const whole = makeJpeg({ width: 160, height: 160, restartInterval: 10 });
    return join(whole.subarray(0, whole.indexOf(Buffer.from([0xff, 0xd3]))), endOfImage);
  },
  'a JPEG with a colour missing': () => {
    const whole = makeJpeg({ layered: true });
    return join(whole.subarray(0, scansOf(whole)[2]), endOfImage);
  },
  'a progressive JPEG without its last refinement': () => endedBeforeScan(-1),
  'a progressive JPEG of its first scan only': () => endedBeforeScan(1),
  'a progressive JPEG cut in its last scan and ended': async () => {
    const file = await noiseJpeg(64, 64, { progressive: true });
    return join(file.subarray(0, -40), endOfImage);
  },
  'a JPEG of 12 bits': () => makeJpeg({ depth: 12, frame: 0xc1 }),
  'a JPEG without loss': () => makeJpeg({ frame: 0xc3 }),
  'a JPEG in layers of several sizes': () => makeJpeg({ frame: 0xc5 }),
  'a JPEG with two frames': () => makeJpeg({ between: [frameOf(0xc0, 8, 0, 24, 0, 40, 1, 1, 0x11, 0)] }),
  'a JPEG of two colours': () =>
    makeJpeg({
      sampling: [
        [1, 1],
        [1, 1],
      ],
    }),
  'a JPEG of five samples a unit': () =>
    makeJpeg({
      sampling: [
        [5, 1],
        [1, 1],
        [1, 1],
      ],
    }),
  'a JPEG of which two colours have the same name and come one after another, so that decoders show one of them only':
    () => makeJpeg({ layered: true, ids: [1, 1, 2] }),
  'a JPEG in many scans, with stray bytes of many lengths behind them': () =>
    makeManyScans((scan) => Buffer.alloc(5 + (scan % 2), 'x')),
  'a JPEG in many scans with stray bytes behind each, of which one is cut': () =>
    withoutScanEnd(
      makeManyScans(() => text('stray')),
      40,
      7,
    ),
  'a JPEG of colours one after another, with zeros before its restart markers, of which one is cut': () => {
    const whole = makeJpeg({ layered: true, width: 160, height: 160, restartInterval: 10 });
    const restart = whole.lastIndexOf(Buffer.from([0xff, 0xd3]));
    const cut = join(whole.subarray(0, restart - 3), whole.subarray(restart));
    return beforeRestarts(cut, Buffer.alloc(1));
  },
  'a JPEG without quantization tables': () => makeJpeg({ hasQuantization: false }),
  'a JPEG with a Huffman table of too many codes': () =>
    makeJpeg({ between: [segment(0xc4, Buffer.from([0x10, 3]), Buffer.alloc(15), Buffer.alloc(3))] }),
  'a JPEG with a Huffman table that is cut': () =>
    makeJpeg({ between: [segment(0xc4, Buffer.from([0x10, 0, 9]), Buffer.alloc(14))] }),
  'a JPEG with a segment longer than the file': () =>
    join(picture.subarray(0, -2), Buffer.from([0xff, 0xe1, 0xff, 0xff])),
  'a JPEG of ten thousand segments': () =>
    makeJpeg({ before: Array.from({ length: 10_000 }, () => segment(0xfe, 'a')) }),
  'a JPEG in a thousand scans': () => manyScans(1_000),
  'a JPEG whose colours come one after another and would fill the memory': () => layeredJpeg(8_000, 8_000, 4),
  'a JPEG with four bytes behind its end': () => join(picture, text('text')),
  'a JPEG with four bytes behind its end, and padding between them': () =>
    join(picture, text('te'), Buffer.alloc(40), text('xt')),
  'a JPEG with stray bytes behind two of its restart intervals, of which another is cut': () => {
    const whole = makeJpeg({ width: 160, height: 160, restartInterval: 10 });
    const [first, third, fourth] = [0xd0, 0xd2, 0xd3].map((code) => whole.indexOf(Buffer.from([0xff, code])));
    const stray = Buffer.alloc(20);
    return join(
      whole.subarray(0, first),
      stray,
      whole.subarray(first, third),
      stray,
      whole.subarray(third, (fourth ?? 0) - 9),
      whole.subarray(fourth),
    );
  },
  'a JPEG with a reserved marker in the middle': () => {
    const middle = Math.floor(jpeg.length * 0.7);
    return join(jpeg.subarray(0, middle), Buffer.from([0xff, 0x41]), jpeg.subarray(middle));
  },
  'a JPEG with a restart marker in the middle, without a restart interval': () => {
    const middle = Math.floor(jpeg.length * 0.7);
    return join(jpeg.subarray(0, middle), Buffer.from([0xff, 0xd0]), jpeg.subarray(middle));
  },
  'a progressive JPEG without a refinement in the middle': async () => withoutScan(5),
  'a progressive JPEG with a scan that is cut, and stray bytes behind each': async () =>
    betweenSegments(withoutScanEnd(await noiseJpeg(64, 64, { progressive: true }), 4, 60), text('stray')),
  'a progressive JPEG whose last scan is cut, with stray bytes behind each': async () => {
    const file = await noiseJpeg(64, 64, { progressive: true });
    return betweenSegments(join(file.subarray(0, -40), endOfImage), Buffer.alloc(30));
  },
  'a progressive JPEG with a Huffman table that is none before its end': async () =>
    beforeEnd(await noiseJpeg(64, 64, { progressive: true }), 0xc4, Buffer.alloc(18, 0xff)),
  'a progressive JPEG with a marker that no decoder knows before its end': async () =>
    beforeEnd(await noiseJpeg(64, 64, { progressive: true }), 0xf0, Buffer.from([1, 1])),
  'a JPEG whose colours come one after another, with a restart interval of one byte before its end': () =>
    beforeEnd(makeJpeg({ layered: true }), 0xdd, Buffer.from([1])),
  'a JPEG with a ZIP archive behind it': () => join(picture, zip),
  'a JPEG with a ZIP archive behind padding': () => join(picture, Buffer.alloc(512), zip),
  'a JPEG with a RAR archive behind it': () => join(picture, text('Rar!\x1a\x07\x01\0'), randomBytes(99)),
  'a JPEG with a compressed file behind it': () => join(picture, gzipSync('a file')),
  'a JPEG with a Windows program behind it': () => join(picture, text('MZ\x90\0'), randomBytes(300)),
  'a JPEG with a Linux program behind it': () => join(picture, text('\x7fELF\x02\x01\x01'), randomBytes(300)),
  'a JPEG with a page behind it': () => join(picture, text('<html><script>alert(1)</script></html>')),
  'a JPEG with a PHP program behind it': () => join(picture, text('\r\n<?php system($_GET["c"]); ?>')),
  'a JPEG with a PDF behind it': () => join(picture, text('%PDF-1.7\n%%EOF\n')),
  'a JPEG with a PNG behind it': () => join(picture, png),
  'a JPEG with a film behind it that its XMP does not name': () => join(picture, film()),
  'a JPEG with a cut film behind it, and behind that the end of a Huawei phone': () =>
    join(picture, film().subarray(0, -5), huaweiEnd(film().length + 15)),
  'a JPEG with a film behind it of which a box begins inside its own length': () => {
    const bytes = film('long');
    bytes.writeBigUInt64BE(8n, bytes.indexOf('mdat') + 4);
    return join(makeJpeg({ before: [xmp('<a GCamera:MotionPhoto="1"/>')] }), bytes);
  },
  'a JPEG with the end of a Huawei phone behind it, without a film': () => join(picture, huaweiEnd(20)),
  'a JPEG with a film behind it that is cut': () =>
    join(makeJpeg({ before: [xmp('<a GCamera:MotionPhoto="1"/>')] }), film().subarray(0, -5)),
  'a JPEG with a second picture that is cut': () => join(indexed, jpeg.subarray(0, -300)),
  'a JPEG with a second picture that says it is 60,000 pixels wide': () => join(indexed, resized(jpeg, 60_000, 60_000)),
  'a JPEG with an archive behind its second picture': () => join(indexed, jpeg, zip),
  'a JPEG with a Samsung trailer that is cut': () => join(picture, samsungTrailer(['a', 'b']).subarray(0, -6)),
  'a JPEG with a Samsung trailer whose directory points before it': () => {
    const trailer = samsungTrailer(['Image_UTC_Data', '1']);
    trailer.writeUInt32LE(9_999, trailer.length - 8 - 12 + 4);
    return join(picture, trailer);
  },
  'a JPEG with an archive before a Samsung trailer': () => join(picture, zip, samsungTrailer(['a', 'b'])),
  'a JPEG with the last bytes of a Samsung trailer only': () => join(picture, text('SEFT')),
  'a JPEG with an archive before a vivo trailer': () =>
    join(picture, zip, text('vivo{"'), Buffer.from('ffffffff1b2a39485766758493a2b1', 'hex')),
};

/** How many bytes the rows of a large picture have. */
const largeRows = (width: number, height: number, bytesPerPixel: number) => height * (1 + width * bytesPerPixel);
const palette = chunk('PLTE', Buffer.alloc(12));
const flood = deflateSync(Buffer.alloc(50_000_000));
const compressed = deflateSync(Buffer.alloc(30 * 91));

/** Files that claim to be a PNG and are none, or not a whole one, or have something behind it. */
export const badPngs: Record<string, MakeFile> = {
  'a text': () => text('not an image'),
  'one byte': () => Buffer.from([0x89]),
  'random bytes': () => randomBytes(5_000),
  'a JPEG': () => jpeg,
  'a PNG cut in the middle': () => png.subarray(0, png.length / 2),
  'a PNG without its end': () => png.subarray(0, -12),
  'a PNG without its last byte': () => png.subarray(0, -1),
  'a PNG with a zero byte behind its end': () => join(png, Buffer.alloc(1)),
  'a PNG with a line end behind its end': () => join(png, text('\r\n')),
  'a PNG with an archive behind it': () => join(png, zip),
  'a PNG with a page behind it': () => join(png, text('<script>alert(1)</script>')),
  'a PNG with a PNG behind it': () => join(png, png),
  'a PNG with two ends': () => join(png, chunk('IEND')),
  'a PNG with data in its end': () => join(png.subarray(0, -12), chunk('IEND', text('data'))),
  'a PNG with a wrong checksum': () => changed(png, png.length - 20),
  'a PNG with a wrong checksum in its header': () => changed(png, 29),
  'a PNG of the first bytes of a Windows file': () => join(text('\x89PNG\n\x1a\n'), png.subarray(8)),
  'a PNG without pixels': () => join(png.subarray(0, 33), chunk('IEND')),
  'a PNG without a header': () => join(png.subarray(0, 8), png.subarray(33)),
  'a PNG with two headers': () => join(png.subarray(0, 33), png.subarray(8)),
  'a PNG of fewer rows than it says': () => handmadePng({ width: 30, height: 30, rows: Buffer.alloc(29 * 91) }),
  'a PNG without the last byte of its rows': () =>
    handmadePng({ width: 30, height: 30, rows: Buffer.alloc(30 * 91 - 1) }),
  'a PNG without the sum of its compressed pixels': () =>
    handmadePng({ width: 30, height: 30, data: compressed.subarray(0, -4) }),
  'a PNG with a wrong sum of its compressed pixels': () =>
    handmadePng({ width: 30, height: 30, data: changed(compressed, compressed.length - 1) }),
  'a PNG whose pixels do not decompress': () => handmadePng({ width: 30, height: 30, data: randomBytes(500) }),
  'a PNG whose pixels decompress to a flood': () =>
    handmadePng({ width: 30, height: 30, data: deflateSync(Buffer.alloc(200_000_000)) }),
  'a PNG whose pixels decompress to four times its rows': () =>
    handmadePng({ width: 1_000, height: 1_000, data: deflateSync(Buffer.alloc(4 * largeRows(1_000, 1_000, 3))) }),
  'a PNG with a wrong sum of its compressed pixels, in a chunk of its own': () => {
    const sum = changed(compressed, compressed.length - 1).subarray(-4);
    return handmadePng({ width: 30, height: 30, data: compressed.subarray(0, -4), after: [chunk('IDAT', sum)] });
  },
  'a PNG with a superfluous IDAT of a wrong checksum': () =>
    handmadePng({ width: 30, height: 30, after: [changed(chunk('IDAT', text('more')), 9)] }),
  'a PNG with a text between its pixels': () =>
    handmadePng({
      width: 30,
      height: 30,
      data: compressed.subarray(0, 10),
      after: [chunk('tEXt', text('a\0b')), chunk('IDAT', compressed.subarray(10))],
    }),
  'an interlaced PNG without the last bytes of its rows': () =>
    handmadePng({ width: 8, height: 8, interlace: 1, rows: Buffer.alloc(8 * 8 * 3 + 15 - 3) }),
  'an interlaced PNG that would fill the memory': () =>
    handmadePng({ width: 8_000, height: 8_000, depth: 16, color: 6, interlace: 1 }),
  'a PNG with a colour profile that inflates to a flood': () =>
    handmadePng({ width: 9, height: 9, before: [chunk('iCCP', join(text('profile\0\0'), flood))] }),
  'a PNG with a text that inflates to a flood': () =>
    handmadePng({ width: 9, height: 9, before: [chunk('zTXt', join(text('a\0\0'), flood))] }),
  'a PNG with a text behind its pixels that inflates to a flood': () =>
    handmadePng({ width: 9, height: 9, after: [chunk('iTXt', join(text('a\0\x01\0en\0b\0'), flood))] }),
  'a PNG with many texts that inflate to a flood together': () => {
    const part = chunk('zTXt', join(text('a\0\0'), deflateSync(Buffer.alloc(1_000_000))));
    return handmadePng({ width: 9, height: 9, before: new Array<Buffer>(20).fill(part) });
  },
  'a PNG with a filter there is not': () =>
    handmadePng({ width: 30, height: 30, rows: Buffer.alloc(30 * 91).fill(9, 91, 92) }),
  'a PNG with a palette it does not have': () =>
    handmadePng({ width: 30, height: 30, color: 3, rows: Buffer.alloc(30 * 31) }),
  'a PNG of which a pixel has a colour that its palette does not have': () =>
    handmadePng({ width: 30, height: 30, color: 3, rows: Buffer.alloc(30 * 31).fill(4, 929, 930), before: [palette] }),
  'a PNG of four bits a pixel, of which a pixel has a colour that its transparent palette does not have': () =>
    handmadePng({
      width: 30,
      height: 30,
      color: 3,
      depth: 4,
      rows: Buffer.alloc(30 * 16).fill(0x50, 100, 101),
      before: [palette, chunk('tRNS', Buffer.alloc(4))],
    }),
  'an interlaced PNG of which the pixels have a colour that its palette does not have': () =>
    handmadePng({
      width: 1,
      height: 1,
      color: 3,
      depth: 1,
      interlace: 1,
      rows: Buffer.from([0, 0x80]),
      before: [chunk('PLTE', Buffer.alloc(3))],
    }),
  'a PNG with a palette of half a colour': () =>
    handmadePng({
      width: 30,
      height: 30,
      color: 3,
      rows: Buffer.alloc(30 * 31),
      before: [chunk('PLTE', Buffer.alloc(7))],
    }),
  'a PNG with a palette of too many colours': () =>
    handmadePng({
      width: 30,
      height: 30,
      color: 3,
      rows: Buffer.alloc(30 * 31),
      before: [chunk('PLTE', Buffer.alloc(771))],
    }),
  'a PNG with its palette behind its pixels': () =>
    handmadePng({ width: 30, height: 30, color: 3, rows: Buffer.alloc(30 * 31), after: [palette] }),
  'a PNG of a color type there is not': () => handmadePng({ width: 30, height: 30, color: 5 }),
  'a PNG of three bits a colour': () => handmadePng({ width: 30, height: 30, color: 0, depth: 3 }),
  'a PNG of no width': () => handmadePng({ width: 0, height: 30 }),
  'a PNG interlaced in a way there is not': () => handmadePng({ width: 30, height: 30, interlace: 2 }),
  'an interlaced PNG with the rows of one that is not': () => handmadePng({ width: 30, height: 30, interlace: 1 }),
  'an animated PNG': () => handmadePng({ width: 30, height: 30, before: [chunk('acTL', Buffer.alloc(8))] }),
  'an animated PNG whose pictures follow the first': () =>
    handmadePng({ width: 30, height: 30, after: [chunk('fcTL', Buffer.alloc(26)), chunk('fdAT', Buffer.alloc(9))] }),
  'a PNG made for iPhones only, with an unknown critical chunk': () =>
    handmadePng({ width: 30, height: 30, before: [chunk('CgBI', Buffer.alloc(4))] }),
  'a PNG with a chunk whose name is none': () => handmadePng({ width: 30, height: 30, before: [chunk('a b1')] }),
  'a PNG of ten thousand chunks': () =>
    handmadePng({ width: 30, height: 30, before: new Array<Buffer>(10_000).fill(chunk('tEXt', text('a\0'))) }),
  'a PNG with a chunk longer than the file': () => changed(png, 33, 0x7f),
  'a PNG 8,001 pixels wide': () => plain(8_001, 10).png().toBuffer(),
  'a PNG 8,001 pixels high': () => plain(10, 8_001).png().toBuffer(),
  'a PNG that says it is 2^31 - 1 pixels wide': () =>
    handmadePng({ width: 0x7fffffff, height: 1, rows: Buffer.alloc(9) }),
  'an interlaced PNG of half a gigabyte without its pixels': () =>
    handmadePng({ width: 8_000, height: 8_000, depth: 16, color: 6, interlace: 1, data: deflateSync(Buffer.alloc(9)) }),
  'a large PNG without its last bytes': () =>
    handmadePng({ width: 8_000, height: 8_000, rows: Buffer.alloc(largeRows(8_000, 8_000, 3) - 5) }),
  'a PNG in a JPEG’s coat': () => join(startOfImage, jfif, png),
};

/** A JPEG with a segment behind its last scan. */
function beforeEnd(file: Buffer, code: number, body: Buffer): Buffer {
  const head = Buffer.from([0xff, code, 0, 2 + body.length]);
  return join(file.subarray(0, -2), head, body, file.subarray(-2));
}
