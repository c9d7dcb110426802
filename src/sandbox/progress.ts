/** Tells what is being done and how long it took. */
export interface StartProgress {
  /** A line as it is. */
  note(line: string): void;
  /** Waits for a step and tells its time; one that takes a while is announced. */
  step<T>(name: string, work: Promise<T>): Promise<T>;
}

/** Progress as lines on a stream: the same on a terminal and in a log. */
export function progressLines(write: (text: string) => void): StartProgress {
  return {
    note: (line) => write(`  ${line}\n`),
    step: async (name, work) => {
      const began = performance.now();
      const announcement = setTimeout(() => write(`  … ${name}\n`), 700);
      try {
        const result = await work;
        write(`  ✓ ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)\n`);
        return result;
      } finally {
        clearTimeout(announcement);
      }
    },
  };
}
