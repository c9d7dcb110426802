import { randomBytes } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { chunk, handmadePng, layeredJpeg, noiseJpeg, noisePng, plain, pngSignature } from './images.ts';
import {
  exif,
  film,
  huaweiEnd,
  jfif,
  makeJpeg,
  multiPictureIndex,
  samsungTrailer,
  segment,
  withSegments,
  xmp,
} from './jpeg-maker.ts';
import { beforeRestarts, betweenSegments } from './jpeg-parts.ts';
import { makeManyScans } from './many-scans.ts';

export type MakeFile = () => Promise<Buffer> | Buffer;

const text = (value: string) => Buffer.from(value, 'latin1');
const join = (...parts: readonly Buffer[]) => Buffer.concat(parts);
const picture = makeJpeg({ before: [exif()] });
const second = makeJpeg({ width: 16, height: 16, sampling: [[1, 1]] });

/** A number in four bytes. */
function long(value: number, isLittle = false): Buffer {
  const bytes = Buffer.alloc(4);
  if (isLittle) bytes.writeUInt32LE(value);
  else bytes.writeUInt32BE(value);
  return bytes;
}

function canonTrailer(data: Buffer): Buffer {
  const name = text('CANON OPTIONAL DATA\0');
  const head = join(name, Buffer.from([0, 1, 0, 0]), long(data.length));
  return join(head, data, name, long(data.length), Buffer.alloc(40));
}

function onePlusTrailer(data: Buffer): Buffer {
  const list = text(JSON.stringify([{ name: 'watermark', offset: data.length, length: data.length, version: 1 }]));
  return join(data, list, text('jxrs'), long(list.length + 8, true));
}

const vivoEnd = Buffer.from('ffffffff1b2a39485766758493a2b1', 'hex');

/** JPEG files as cameras, phones, scanners, galleries and programs write them. */
export const goodJpegs: Record<string, MakeFile> = {
  'a photograph of a phone, 4:2:0 with Exif': () => picture,
  'a photograph of an Android phone passed on by a messenger, JFIF without Exif': () => noiseJpeg(80, 60),
  'a photograph of a compact camera, 4:2:2': () =>
    makeJpeg({
      sampling: [
        [2, 1],
        [1, 1],
        [1, 1],
      ],
    }),
  'a photograph turned without loss, 4:4:0': () =>
    makeJpeg({
      sampling: [
        [1, 2],
        [1, 1],
        [1, 1],
      ],
    }),
  'a still of a DV camera, 4:1:1': () =>
    makeJpeg({
      sampling: [
        [4, 1],
        [1, 1],
        [1, 1],
      ],
    }),
  'a still of a PAL camera, 4:1:0': () =>
    makeJpeg({
      sampling: [
        [4, 2],
        [1, 1],
        [1, 1],
      ],
    }),
  'a picture saved in highest quality, 4:4:4': () =>
    makeJpeg({
      sampling: [
        [1, 1],
        [1, 1],
        [1, 1],
      ],
    }),
  'a picture whose colours are finer than its brightness': () =>
    makeJpeg({
      sampling: [
        [1, 1],
        [2, 2],
        [1, 1],
      ],
    }),
  'a grey scan': () => plain(50, 70).greyscale().jpeg().toBuffer(),
  'a grey scan with the sampling of a coloured one': () => makeJpeg({ sampling: [[2, 2]], width: 17, height: 9 }),
  'a scan in four colours, Adobe CMYK': () => plain(20, 20).toColourspace('cmyk').jpeg().toBuffer(),
  'a scan in four colours, Adobe YCCK': () =>
    makeJpeg({
      sampling: [
        [2, 2],
        [1, 1],
        [1, 1],
        [2, 2],
      ],
      before: [segment(0xee, 'Adobe', Buffer.from([0, 100, 0, 0, 0, 0, 2]))],
    }),
  'a picture in RGB, Adobe without a transform': () =>
    makeJpeg({
      sampling: [
        [1, 1],
        [1, 1],
        [1, 1],
      ],
      ids: [0x52, 0x47, 0x42],
      before: [segment(0xee, 'Adobe', Buffer.from([0, 100, 0, 0, 0, 0, 0]))],
    }),
  'a picture of a web gallery, progressive': () => noiseJpeg(83, 61, { progressive: true }),
  'a picture of a web gallery, progressive 4:4:4': () =>
    noiseJpeg(65, 33, { progressive: true, chromaSubsampling: '4:4:4', quality: 100 }),
  'a picture made small by mozjpeg': () => noiseJpeg(120, 90, { mozjpeg: true, quality: 60 }),
  'a progressive picture in four colours': () =>
    plain(40, 30).toColourspace('cmyk').jpeg({ progressive: true }).toBuffer(),
  'a picture of one pixel, coded arithmetically': () =>
    Buffer.from(
      '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/yQALCAABAAEBAREA/8wABgAQEAX/2gAIAQEAAD8A0s8g/9k=',
      'base64',
    ),
  'a photograph of a camera that restarts with every row': () =>
    makeJpeg({ width: 160, height: 160, restartInterval: 10 }),
  'a photograph of a camera that restarts with every unit': () =>
    makeJpeg({ width: 160, height: 160, restartInterval: 1 }),
  'a photograph with a restart marker before its end': () =>
    makeJpeg({ restartInterval: 2, behindScan: Buffer.from([0xff, 0xd0 + 2]) }),
  'a photograph of a Samsung camera, whose scan says that it ends with coefficient 0': () =>
    makeJpeg({ lastCoefficient: 0 }),
  'a photograph with a thumbnail in its Exif': () => makeJpeg({ before: [exif(second)] }),
  'a photograph with JFIF and Exif': () => makeJpeg({ before: [jfif, exif()] }),
  'a photograph with Exif before JFIF': () => makeJpeg({ before: [exif(), jfif] }),
  'a scan with a thumbnail in JFIF': () =>
    makeJpeg({ before: [jfif, segment(0xe0, 'JFXX\0', Buffer.from([0x10]), second)] }),
  'a picture of Photoshop, with its resources and a profile in several segments': () =>
    makeJpeg({
      before: [
        segment(0xed, 'Photoshop 3.0\0', '8BIM', randomBytes(500)),
        ...[1, 2, 3].map((part) => segment(0xe2, 'ICC_PROFILE\0', Buffer.from([part, 3]), randomBytes(60_000))),
      ],
    }),
  'a picture with extended XMP': () =>
    makeJpeg({
      before: [xmp('a'), segment(0xe1, 'http://ns.adobe.com/xmp/extension/\0', '0'.repeat(32), randomBytes(65_000))],
    }),
  'a picture with content credentials': () => makeJpeg({ before: [segment(0xeb, 'JP\0\0', randomBytes(9_000))] }),
  'a picture of a program that writes its name into a comment': () =>
    makeJpeg({ before: [segment(0xfe, 'CREATOR: gd-jpeg v1.0 (using IJG JPEG v62), quality = 80\n')] }),
  'a photograph with large notes of its maker': () =>
    makeJpeg({ before: [segment(0xe1, 'Exif\0\0', randomBytes(65_000))] }),
  'a frame of a webcam, without Huffman tables': () =>
    makeJpeg({ isTableless: true, before: [segment(0xe0, 'AVI1\0\0\0\0')] }),
  'a scan of a multifunction device, extended sequential': () => makeJpeg({ frame: 0xc1 }),
  'a picture whose colours come one after another': () => layeredJpeg(64, 48, 3),
  'a picture whose colours come one after another, 4:2:0': () => makeJpeg({ layered: true, width: 35, height: 19 }),
  'a photograph with fill bytes before its markers': () =>
    makeJpeg({ before: [Buffer.from([0xff, 0xff]), exif()], between: [Buffer.alloc(9, 0xff)] }),
  'a photograph with zero bytes between its segments': () => makeJpeg({ before: [exif(), Buffer.alloc(7)] }),
  'a photograph with zero bytes behind its last pixel': () => makeJpeg({ behindScan: Buffer.alloc(2) }),
  'a photograph whose last byte is filled up with zeros': () => makeJpeg({ fillBit: 0, width: 33, height: 17 }),
  'a photograph with a restart interval of none': () => makeJpeg({ between: [segment(0xdd, Buffer.alloc(2))] }),
  'a photograph that says its height once more': () => makeJpeg({ behindFirst: [segment(0xdc, Buffer.from([0, 24]))] }),
  'a picture of one pixel': () => makeJpeg({ width: 1, height: 1 }),
  'a picture 8,000 pixels wide and high': () => plain(8_000, 8_000).jpeg().toBuffer(),
  'a progressive picture 8,000 pixels wide and high': () =>
    plain(8_000, 8_000).jpeg({ progressive: true, chromaSubsampling: '4:4:4' }).toBuffer(),
  'a photograph with one zero byte behind its end': () => join(picture, Buffer.alloc(1)),
  'a photograph filled up with zeros to a block of a memory card': () =>
    join(picture, Buffer.alloc(4_096 - (picture.length % 4_096))),
  'a photograph with a line end behind it, of a mail program': () => join(picture, text('\r\n')),
  'a photograph with fill bytes behind its end': () => join(picture, Buffer.alloc(16, 0xff)),
  'a photograph of a Samsung phone, with its trailer': () =>
    join(picture, samsungTrailer(['Image_UTC_Data', '1700000000000'], ['MCC_Data', '621'])),
  'a photograph of a Samsung phone, with padding around its trailer': () =>
    join(picture, Buffer.alloc(3), samsungTrailer(['Camera_Capture_Mode_Info', '1']), Buffer.alloc(5)),
  'a photograph of a Samsung phone, with a gain map and its trailer': () =>
    join(withSegments(second, multiPictureIndex(2)), second, samsungTrailer(['Image_UTC_Data', '1'])),
  'a photograph of a vivo phone, with its trailer': () => join(picture, text('vivo{"mode":"photo"}\0'), vivoEnd),
  'a photograph of a OnePlus phone, with its trailer': () => join(picture, onePlusTrailer(randomBytes(200))),
  'a photograph edited with Canon’s program, with its trailer': () => join(picture, canonTrailer(randomBytes(300))),
  'a motion photo of an Android phone, with its film': () =>
    join(makeJpeg({ before: [xmp('<rdf:Description GCamera:MotionPhoto="1"/>')] }), film()),
  'a motion photo whose film has a length of 8 bytes': () =>
    join(makeJpeg({ before: [xmp('<rdf:Description GCamera:MotionPhoto="1"/>')] }), film('long')),
  'a motion photo whose film says that its pixels are the rest of it': () =>
    join(makeJpeg({ before: [xmp('<rdf:Description GCamera:MotionPhoto="1"/>')] }), film('rest')),
  'a moving picture of a Huawei phone, with its film': () => join(picture, film(), huaweiEnd(film().length + 20)),
  'a photograph of a 3D camera, with a second picture': () =>
    join(makeJpeg({ before: [exif(), multiPictureIndex(2)] }), picture),
  'a photograph with two previews behind it, and padding between them': () =>
    join(makeJpeg({ before: [exif(), multiPictureIndex(3)] }), Buffer.alloc(30), second, Buffer.alloc(14), second),
  'a photograph in Ultra HDR, with its gain map': () =>
    join(
      makeJpeg({ before: [exif(), xmp('<rdf:Description hdrgm:Version="1.0"/>'), multiPictureIndex(2)] }),
      withSegments(second, xmp('<rdf:Description hdrgm:GainMapMax="2"/>')),
    ),
  'a photograph of an iPhone, with its gain map': () =>
    join(
      makeJpeg({ before: [exif(), multiPictureIndex(2)] }),
      withSegments(second, xmp('<rdf:Description HDRGainMap:HDRGainMapVersion="65536"/>')),
    ),
  'a photograph of an older camera, with a preview behind it that no index names': () => join(picture, second),
  'a photograph with a stray byte behind its last pixel': () => makeJpeg({ behindScan: text('x') }),
  'a photograph with a text behind its last pixel': () => makeJpeg({ behindScan: text('a text') }),
  'a photograph with bytes behind its last pixel that look like a reserved marker': () =>
    makeJpeg({ behindScan: Buffer.from([0xff, 0x41, 0xff, 0x00, 0xff, 0x02, 9]) }),
  'a photograph with a thousand zeros behind its last pixel': () => makeJpeg({ behindScan: Buffer.alloc(1_000) }),
  'a photograph with blocks behind its last pixel': () => makeJpeg({ extraBlocks: 6 }),
  'a photograph with more rows than it says': () => makeJpeg({ height: 24, saidHeight: 16 }),
  'a photograph with restart markers behind its last pixel': () =>
    makeJpeg({ behindScan: Buffer.from([0xff, 0xd0, 0xff, 0xd1, 0xff, 0xd5]) }),
  'a photograph with more restart markers than it has intervals, and bytes between them': () =>
    makeJpeg({ restartInterval: 2, behindScan: Buffer.from([0xff, 0xd2, 0, 0, 0xff, 0xd3, 1]) }),
  'a photograph with zeros before each of its restart markers': () =>
    beforeRestarts(makeJpeg({ width: 160, height: 160, restartInterval: 10 }), Buffer.alloc(30)),
  'a photograph with text between its segments': () => makeJpeg({ before: [text('text')] }),
  'a photograph with bytes between all its segments': () => betweenSegments(picture, Buffer.from([0, 0, 7])),
  'a photograph with a restart marker between its segments': () => makeJpeg({ before: [Buffer.from([0xff, 0xd3])] }),
  'a photograph of which a segment is marked 00 E1': () => {
    const file = Buffer.from(picture);
    file[2] = 0;
    return file;
  },
  'a photograph with a comment of stated length 0': () =>
    join(picture.subarray(0, 2), Buffer.from([0xff, 0xfe, 0, 0]), picture.subarray(2)),
  'a photograph with application data of stated length 1': () =>
    join(picture.subarray(0, 2), Buffer.from([0xff, 0xe5, 0, 1]), picture.subarray(2)),
  'a progressive picture with application data of stated length 0 before its end': async () => {
    const file = await noiseJpeg(64, 64, { progressive: true });
    return join(file.subarray(0, -2), Buffer.from([0xff, 0xe1, 0, 0]), file.subarray(-2));
  },
  'a progressive picture with a comment and a Huffman table before its end': async () => {
    const file = await noiseJpeg(64, 64, { progressive: true });
    const table = join(Buffer.from([0xff, 0xc4, 0, 20, 0, 1]), Buffer.alloc(16));
    return join(file.subarray(0, -2), Buffer.from([0xff, 0xfe, 0, 3, 7]), table, file.subarray(-2));
  },
  'a progressive picture with a stray byte before its end': async () => {
    const file = await noiseJpeg(64, 64, { progressive: true });
    return join(file.subarray(0, -2), text('x'), file.subarray(-2));
  },
  'a progressive picture with bytes behind all its segments and scans': async () =>
    betweenSegments(await noiseJpeg(64, 64, { progressive: true }), Buffer.from([0, 1, 0xff, 0, 2])),
  'a picture whose colours come one after another, with zeros behind each': () =>
    makeJpeg({ layered: true, behindScan: Buffer.alloc(40) }),
  'a picture whose colours come one after another and restart, with a zero before each restart marker': () =>
    beforeRestarts(makeJpeg({ layered: true, width: 160, height: 160, restartInterval: 10 }), Buffer.alloc(1)),
  'a picture whose colours come one after another and restart, with zeros before each marker': () =>
    beforeRestarts(
      makeJpeg({ layered: true, width: 160, height: 160, restartInterval: 7, behindScan: Buffer.alloc(9) }),
      Buffer.alloc(9),
    ),
  'a picture whose colours come one after another and restart, with zeros and a text behind each': () =>
    beforeRestarts(
      makeJpeg({ layered: true, width: 160, height: 160, restartInterval: 7, behindScan: text('a text') }),
      Buffer.alloc(2),
    ),
  'a photograph with a zero before each restart marker, of which some pixels end with a zero': () =>
    beforeRestarts(makeJpeg({ width: 160, height: 160, restartInterval: 3, fillBit: 0 }), Buffer.alloc(1)),
  'a progressive picture of many scans with the same number of stray bytes behind each': () =>
    makeManyScans(() => text('stray')),
  'a picture two colours of which have the same name': () => makeJpeg({ ids: [1, 1, 2] }),
  'a picture whose colours have the same name': () => makeJpeg({ ids: [0, 0, 0] }),
  'a picture whose first and last colours have the same name': () => makeJpeg({ ids: [2, 1, 2] }),
  'a photograph with one byte behind its end': () => join(picture, text('x')),
  'a photograph with three bytes behind its end': () => join(picture, Buffer.from([0x80, 0x3b, 0x9a])),
  'a photograph with a byte behind its padding': () => join(picture, Buffer.alloc(20), text('x')),
  'a photograph with a byte before its padding': () => join(picture, text('x'), Buffer.alloc(20)),
  'a photograph with a byte behind its second picture': () =>
    join(makeJpeg({ before: [exif(), multiPictureIndex(2)] }), second, text('x')),
  'a photograph with a byte behind its trailer': () =>
    join(picture, samsungTrailer(['Image_UTC_Data', '1']), text('x')),
};

const rows = (width: number, height: number, bits: number, value = 0) => {
  const row = Buffer.alloc(1 + Math.ceil((width * bits) / 8), value);
  row[0] = 0;
  return join(...new Array<Buffer>(height).fill(row));
};
const palette = chunk('PLTE', Buffer.alloc(12, 120));

/** A chunk with a wrong checksum. */
function wrong(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt32BE((copy.readUInt32BE(copy.length - 4) ^ 1) >>> 0, copy.length - 4);
  return copy;
}

/** PNG files as phones, scanners and programs write them. */
export const goodPngs: Record<string, MakeFile> = {
  'a screenshot': () => noisePng(64, 48),
  'a screenshot of an iPhone': () =>
    handmadePng({
      width: 30,
      height: 20,
      before: [
        chunk('sRGB', Buffer.from([0])),
        chunk('eXIf', text('MM\0*\0\0\0\b\0\0')),
        chunk('pHYs', Buffer.alloc(9)),
        chunk('iDOT', Buffer.alloc(28)),
      ],
    }),
  'a screenshot of an Android phone, with significant bits': () =>
    handmadePng({
      width: 9,
      height: 9,
      color: 6,
      rows: rows(9, 9, 32),
      before: [chunk('sBIT', Buffer.from([8, 8, 8, 8]))],
    }),
  'a picture with a colour profile': () =>
    handmadePng({
      width: 9,
      height: 9,
      before: [chunk('iCCP', join(text('profile\0\0'), deflateSync(randomBytes(300))))],
    }),
  'a picture with a damaged colour profile, of which decoders only warn': () =>
    handmadePng({ width: 9, height: 9, before: [chunk('iCCP', text('sRGB\0\0 not compressed'))] }),
  'a picture with gamma and chromaticities': () =>
    handmadePng({ width: 9, height: 9, before: [chunk('gAMA', long(45_455)), chunk('cHRM', Buffer.alloc(32, 1))] }),
  'a scan with texts, a time and a resolution': () =>
    handmadePng({
      width: 9,
      height: 9,
      before: [
        chunk('tEXt', text('Title\0a scan')),
        chunk('zTXt', join(text('a\0\0'), deflateSync(text('b')))),
        chunk('iTXt', text('XML:com.adobe.xmp\0\0\0\0\0<x/>')),
      ],
      after: [chunk('tIME', Buffer.from([7, 230, 1, 1, 0, 0, 0])), chunk('tEXt', text('Software\0scanner'))],
    }),
  'a picture with content credentials': () =>
    handmadePng({ width: 9, height: 9, before: [chunk('caBX', randomBytes(900))] }),
  'a picture with a transparent colour and a background': () =>
    handmadePng({ width: 9, height: 9, before: [chunk('tRNS', Buffer.alloc(6)), chunk('bKGD', Buffer.alloc(6))] }),
  'a picture with a palette': () =>
    handmadePng({ width: 9, height: 9, color: 3, rows: rows(9, 9, 8, 1), before: [palette] }),
  'a picture with a short palette whose last colour is white': () =>
    handmadePng({
      width: 9,
      height: 9,
      color: 3,
      depth: 4,
      rows: rows(9, 9, 4, 0x22),
      before: [chunk('PLTE', Buffer.alloc(9, 255))],
    }),
  'a picture of two bits a pixel that fill up its rows with ones': () =>
    handmadePng({
      width: 1,
      height: 9,
      color: 3,
      depth: 2,
      rows: rows(1, 9, 2, 0x3f),
      before: [chunk('PLTE', Buffer.alloc(9, 120))],
    }),
  'a large picture with a palette of five colours': () =>
    handmadePng({
      width: 8_000,
      height: 8_000,
      color: 3,
      rows: rows(8_000, 8_000, 8, 4),
      before: [chunk('PLTE', Buffer.alloc(15, 120))],
    }),
  'a picture with a transparent palette and its histogram': () =>
    handmadePng({
      width: 9,
      height: 9,
      color: 3,
      rows: rows(9, 9, 8, 2),
      before: [palette, chunk('tRNS', Buffer.alloc(4)), chunk('hIST', Buffer.alloc(8))],
    }),
  'a picture with a palette made small': () => plain(33, 17).png({ palette: true }).toBuffer(),
  'a fax of one bit': () => handmadePng({ width: 13, height: 9, color: 0, depth: 1, rows: rows(13, 9, 1, 0xa5) }),
  'a grey scan of two bits': () =>
    handmadePng({ width: 13, height: 9, color: 0, depth: 2, rows: rows(13, 9, 2, 0x1b) }),
  'a palette of four bits': () =>
    handmadePng({ width: 13, height: 9, color: 3, depth: 4, rows: rows(13, 9, 4, 0x12), before: [palette] }),
  'a grey scan of 16 bits': () => handmadePng({ width: 13, height: 9, color: 0, depth: 16, rows: rows(13, 9, 16, 7) }),
  'a grey picture with transparency': () => handmadePng({ width: 13, height: 9, color: 4, rows: rows(13, 9, 16, 7) }),
  'a scan of 16 bits a colour': () => handmadePng({ width: 13, height: 9, depth: 16, rows: rows(13, 9, 48, 7) }),
  'a picture of 16 bits with transparency': () =>
    handmadePng({ width: 13, height: 9, color: 6, depth: 16, rows: rows(13, 9, 64, 7) }),
  'an interlaced picture': () => plain(33, 17).png({ progressive: true }).toBuffer(),
  'an interlaced picture of few pixels, without some passes': () => plain(3, 2).png({ progressive: true }).toBuffer(),
  'a picture in many pieces, as libpng writes it': () => {
    const data = deflateSync(rows(40, 40, 24, 9));
    const pieces = Array.from({ length: data.length }, (_, at) => chunk('IDAT', data.subarray(at, at + 1)));
    return handmadePng({ width: 40, height: 40, data: Buffer.alloc(0), after: pieces });
  },
  'a picture without compression': () =>
    handmadePng({ width: 40, height: 40, data: deflateSync(rows(40, 40, 24), { level: 0 }) }),
  'a picture of one pixel': () => handmadePng({ width: 1, height: 1 }),
  'a picture with zeros behind its compressed pixels': () =>
    handmadePng({ width: 9, height: 9, data: join(deflateSync(rows(9, 9, 24)), Buffer.alloc(50)) }),
  'a picture with bytes behind its compressed pixels': () =>
    handmadePng({ width: 9, height: 9, data: join(deflateSync(rows(9, 9, 24)), text('more')) }),
  'a picture with an IDAT too many': () =>
    handmadePng({ width: 9, height: 9, after: [chunk('IDAT'), chunk('IDAT', randomBytes(99))] }),
  'a picture with an IDAT too many behind a text': () =>
    handmadePng({ width: 9, height: 9, after: [chunk('tEXt', text('a\0b')), chunk('IDAT', text('more'))] }),
  'a picture with a row too many': () => handmadePng({ width: 9, height: 9, rows: rows(9, 10, 24) }),
  'an interlaced picture with bytes too many': () =>
    handmadePng({ width: 8, height: 8, interlace: 1, rows: Buffer.alloc(8 * 8 * 3 + 15 + 40) }),
  'a picture with a wrong checksum in a text': () =>
    handmadePng({ width: 9, height: 9, before: [wrong(chunk('tEXt', text('a\0b')))] }),
  'a picture with wrong checksums in its profile, its texts and its time': () =>
    handmadePng({
      width: 9,
      height: 9,
      before: ['iCCP', 'gAMA', 'pHYs', 'eXIf'].map((type) => wrong(chunk(type, Buffer.alloc(9)))),
      after: ['tEXt', 'zTXt', 'iTXt', 'tIME'].map((type) => wrong(chunk(type, Buffer.alloc(9)))),
    }),
  'a picture with two suggested palettes': () => handmadePng({ width: 9, height: 9, before: [palette, palette] }),
  'a picture with a colour profile of some megabytes': () =>
    handmadePng({
      width: 9,
      height: 9,
      before: [chunk('iCCP', join(text('profile\0\0'), deflateSync(Buffer.alloc(3_000_000))))],
    }),
  'a picture 8,000 pixels wide and high': () => plain(8_000, 8_000).png().toBuffer(),
  'a picture 8,000 pixels wide and high, of 16 bits': () => largePng(),
};

let large: Buffer | undefined;

/** A PNG of half a megabyte whose pixels take half a gigabyte: 8,000 pixels to a side, 16 bits, four samples. */
export function largePng(): Buffer {
  large ??= (() => {
    const row = 1 + 8 * 8_000;
    const block = deflateSync(Buffer.alloc(row * 500), { level: 9, finishFlush: 3 });
    const head = Buffer.alloc(13);
    head.writeUInt32BE(8_000, 0);
    head.writeUInt32BE(8_000, 4);
    head[8] = 16;
    head[9] = 6;
    // A stream of blocks that each end with a full flush may be repeated: its sum of all zero bytes is known.
    const bytes = row * 8_000;
    const sum = long(((bytes % 65_521) * 65_536 + 1) >>> 0);
    const blocks = [block, ...new Array<Buffer>(15).fill(block.subarray(2))];
    const end = Buffer.from([3, 0]);
    return join(
      pngSignature,
      chunk('IHDR', head),
      ...blocks.map((each) => chunk('IDAT', each)),
      chunk('IDAT', join(end, sum)),
      chunk('IEND'),
    );
  })();
  return large;
}
