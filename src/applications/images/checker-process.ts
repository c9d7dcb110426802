import sharp from 'sharp';
import { type Checked, readChecks, readyLine, toLine } from './checker-protocol.ts';
import { checkEntropy } from './jpeg-entropy.ts';
import { InvalidImage, mostPixels } from './jpeg-segments.ts';
import { arePixelsWhole, readPng } from './png.ts';

// One picture at a time, in one thread, with nothing kept of it.
sharp.cache(false);
sharp.concurrency(1);

/** To how many pixels a side pictures are scaled down: all of the file is decoded, and the result takes no memory. */
const sidePixels = 16;

// Signals are for the gateway, which ends this process when it needs it no more.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.stdout.write(readyLine);
for await (const { file, mediaType } of readChecks(process.stdin)) {
  const isWhole = await canDecode(file, mediaType);
  // The kernel's own count: the files that tell more of a process are out of reach here.
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  const cpuMs = Math.round((userCPUTime + systemCPUTime) / 1_000);
  const answer: Checked = { isWhole, mostResidentBytes: 1_024 * maxRSS, cpuMs };
  process.stdout.write(toLine(answer));
}
process.exit();

/** Whether all pixels of an image are there and can be shown. Its headers were checked before. */
async function canDecode(file: Buffer, mediaType: string): Promise<boolean> {
  try {
    return mediaType === 'image/png' ? await arePixelsWhole(readPng(file)) : await isWholeJpeg(file);
  } catch (error) {
    if (error instanceof InvalidImage) return false;
    throw error;
  }
}

/**
 * A decoder shows also what is not whole, and warns of it. It also warns of whole pictures. So we look ourselves for what
 * is missing, and the decoder says only whether it can show the picture at all. What is coded arithmetically we cannot
 * read: there every warning counts.
 */
async function isWholeJpeg(file: Buffer): Promise<boolean> {
  const failOn = checkEntropy(file) ? 'error' : 'warning';
  try {
    const picture = sharp(file, { failOn, limitInputPixels: mostPixels * mostPixels, sequentialRead: true });
    await picture.resize(sidePixels, sidePixels, { fit: 'fill' }).raw().toBuffer();
    return true;
  } catch {
    return false;
  }
}
