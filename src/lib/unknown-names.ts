import type { Logger } from './log.ts';

/** How many names are logged in the life of a process, and how long a name may be in a log line. */
const mostNames = 100;
const mostCharacters = 40;

/** Called with an enumeration and a name of it that this version does not know. */
export type UnknownNameListener = (enumeration: string, name: string) => void;

const listeners = new Set<UnknownNameListener>();

/** Reports a name that another version stored and this one does not know. */
export function noteUnknownName(enumeration: string, name: string): void {
  for (const listener of listeners) listener(enumeration, name);
}

/** Has each unknown name logged once, until the function returned is called. Memory is bounded. */
export function logUnknownNames(log: Logger): () => void {
  const logged = new Set<string>();
  const listener: UnknownNameListener = (enumeration, name) => {
    const shown = name.slice(0, mostCharacters);
    const both = `${enumeration} ${shown}`;
    if (logged.has(both) || logged.size >= mostNames) return;
    logged.add(both);
    log.warn(
      { enumeration, name: shown, isLast: logged.size === mostNames },
      'a value is not known to this version: its object is shown as it is stored, and left alone',
    );
  };
  listeners.add(listener);
  return () => listeners.delete(listener);
}
