/** Waits for something, at most a time. */
export async function atMost(timeoutMs: number, wait: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([wait, over]);
  clearTimeout(timer);
}
