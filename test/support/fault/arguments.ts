import { readdirSync, readFileSync } from 'node:fs';

const everyMs = 25;

/** Looks again and again at the arguments of all programs that run. `stop` returns those that were seen, one a line. */
export function watchArguments(): { stop(): string } {
  const seen = new Set<string>();
  const look = () => {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) seen.add(argumentsOf(pid));
  };
  const timer = setInterval(look, everyMs);
  return {
    stop() {
      clearInterval(timer);
      look();
      return [...seen].join('\n');
    },
  };
}

function argumentsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    // It has ended.
    return '';
  }
}
