/** Timers of Node hold no longer wait. */
export const maxTimerMs = 2 ** 31 - 1;

/**
 * Runs something that ends when a time is over or the caller's signal is aborted, also if it ignores the signal that it gets.
 * Nothing of it stays with the caller's signal afterwards: `AbortSignal.any` would keep something of every call for as long as
 * that signal lives.
 */
export async function withDeadline<T>(
  ms: number,
  outer: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const { signal } = ending;
  const stop = () => ending.abort(outer?.reason);
  const late = () => ending.abort(timeoutError(ms));
  const timer = setTimeout(late, Math.ceil(Math.min(Math.max(1, ms), maxTimerMs)));
  outer?.addEventListener('abort', stop, { once: true });
  try {
    outer?.throwIfAborted();
    const ended = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    return await Promise.race([run(signal), ended]);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', stop);
  }
}

export function timeoutError(ms: number): DOMException {
  return new DOMException(`It took longer than ${Math.ceil(ms)} ms.`, 'TimeoutError');
}
