/** Waits for something, at most a time. Answers whether it ended by then. */
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
