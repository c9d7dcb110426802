import { constants, setPriority } from 'node:os';
import type { Check, Checked } from './checker-protocol.ts';
import { canDecode } from './decode.ts';

// Orders before documents: what decodes takes the time that what trades leaves.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

// Signals are for the gateway, which ends us when it no longer needs us.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit());

process.on('message', async ({ file, mediaType }: Check) => {
  const isWhole = await canDecode(Buffer.from(file.buffer, file.byteOffset, file.byteLength), mediaType);
  const answer: Checked = { isWhole, residentBytes: process.memoryUsage.rss() };
  process.send?.(answer);
});
