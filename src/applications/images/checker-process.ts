import { type Checked, readChecks, readyLine, toLine } from './checker-protocol.ts';
import { canDecode } from './decode.ts';

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
