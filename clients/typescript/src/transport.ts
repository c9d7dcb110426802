import { hasUsualDispatcher, notePlatformDispatcher } from './dispatchers.ts';
import { type Answer, type PreparedRequest, readText } from './request.ts';

/** Sends a request and reads its whole answer. It ends when the signal is aborted. */
export type Send = (request: PreparedRequest, signal: AbortSignal) => Promise<Answer>;

/** The one of the platform, before a test or a tool puts another one in its place. */
const platformFetch: unknown = globalThis.fetch;

/**
 * How a client sends. `fetch` loses an answer that comes before the request is sent whole if the connection then breaks, so files
 * are sent another way, unless the program has a `fetch` of its own or gave the platform's another dispatcher, such as a proxy or one
 * with certificates.
 */
export function sendWith(given: typeof fetch | undefined): Send {
  const used = given ?? globalThis.fetch;
  const isOwn = given !== undefined || used !== platformFetch;
  if (!isOwn) notePlatformDispatcher();
  return async (request, signal) => {
    if (typeof request.init.body === 'object' && !isOwn && hasUsualDispatcher()) {
      const { upload } = await import('./uploads.ts');
      return upload(request, signal);
    }
    const response = await used(request.url, { ...request.init, redirect: 'manual', signal });
    const { status, headers } = response;
    return { status, header: (name) => headers.get(name) ?? undefined, text: await readText(response.body) };
  };
}
