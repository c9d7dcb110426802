/** Waits at most the given time. Returns whether the promise settled by then. */
export async function atMost(timeoutMs: number, wait: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([wait.then(() => true), over]);
  } finally {
    clearTimeout(timer);
  }
}
