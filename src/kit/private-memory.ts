import { writeFileSync } from 'node:fs';

/** Secrets and customers' data are in memory. Closes the ways by which the system or this user's other processes get it. */
export function keepMemoryPrivate(): void {
  // Node would open its debugger, which reads and changes everything.
  process.on('SIGUSR1', () => undefined);
  try {
    // A core dump of this process, and of those it starts, contains none of their memory.
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // The file belongs to root if the Node program cannot be read. Then the kernel writes no core dump at all.
  }
}
