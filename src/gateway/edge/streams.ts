import { ApiError } from './errors.ts';

/** How long a client may take to read one message. A slower one would fall ever further behind, so its stream ends. */
const slowReaderMs = 30_000;
/** How long a slow reader may take to read the end of its stream. */
export const slowEndMs = 5_000;

/** A port's open streams. Each ends when its controller is aborted, with the reason as its error. */
export class OpenStreams {
  readonly #open = new Set<AbortController>();
  #isClosing = false;

  open(): AbortController {
    const ending = new AbortController();
    this.#open.add(ending);
    if (this.#isClosing) ending.abort(stopping());
    return ending;
  }

  ended(ending: AbortController): void {
    this.#open.delete(ending);
  }

  /** Ends all streams, and every later one. */
  close(): void {
    this.#isClosing = true;
    for (const ending of this.#open) ending.abort(stopping());
  }
}

/**
 * Sends a stream's messages to a client, each after the previous one has left. So unread messages wait at their source,
 * not in memory. Returns at the stream's end, or throws its reason.
 */
export async function deliver<T>(
  messages: AsyncIterable<T>,
  ending: AbortController,
  write: (message: T) => Promise<void>,
  slowMs = slowReaderMs,
): Promise<void> {
  for await (const message of messages) await written(write(message), ending, slowMs);
}

function written(writing: Promise<void>, ending: AbortController, slowMs: number): Promise<void> {
  const { signal } = ending;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => ending.abort(tooSlow()), slowMs);
    const settle = (then: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      then();
    };
    const onAbort = () => settle(() => reject(signal.reason));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    writing.then(
      () => settle(resolve),
      (error: unknown) => settle(() => reject(error)),
    );
  });
}

function stopping(): ApiError {
  return new ApiError('service_unavailable', {
    message: 'The service is stopping. Open the stream again with the last cursor received.',
  });
}

function tooSlow(): ApiError {
  return new ApiError('service_unavailable', {
    message: 'The stream was read too slowly. Open it again with the last cursor received.',
  });
}
