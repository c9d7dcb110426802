import { constants, setPriority } from 'node:os';
import { type Checked, readChecks } from './checker-protocol.ts';
import { canDecode } from './decode.ts';

// Orders before documents: what decodes takes the time that what trades leaves.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

// Signals are for the gateway, which ends us when it no longer needs us.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit());

for await (const { file, mediaType } of readChecks(process.stdin)) {
  const isWhole = await canDecode(file, mediaType);
  const answer: Checked = { isWhole, residentBytes: process.memoryUsage.rss() };
  process.send?.(answer);
}
process.exit();
