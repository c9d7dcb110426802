import { type Checked, readChecks, readyLine, toLine } from './checker-protocol.ts';
import { isWholeJpeg } from './jpeg-pixels.ts';
import { InvalidImage } from './jpeg-segments.ts';
import { isWholePng } from './png-pixels.ts';

// The gateway gets the signals, and ends this process when it no longer needs it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.stdout.write(readyLine);
for await (const { file, mediaType } of readChecks(process.stdin)) {
  const isWhole = await canDecode(file, mediaType);
  // From the kernel, because the walls hide the files in /proc.
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  const cpuMs = Math.round((userCPUTime + systemCPUTime) / 1_000);
  const answer: Checked = { isWhole, mostResidentBytes: 1_024 * maxRSS, cpuMs };
  process.stdout.write(toLine(answer));
}
process.exit();

/** Whether all pixels of an image are there and can be shown. Its headers were checked before. */
async function canDecode(file: Buffer, mediaType: string): Promise<boolean> {
  try {
    return mediaType === 'image/png' ? await isWholePng(file) : await isWholeJpeg(file);
  } catch (error) {
    if (error instanceof InvalidImage) return false;
    throw error;
  }
}
