import { setTimeout as sleep } from 'node:timers/promises';
import createClient, {
  type Client,
  type ClientPathsWithMethod,
  type FetchOptions,
  type FetchResponse,
} from 'openapi-fetch';
import type { components, paths } from '../../gen/openapi.ts';

export type Schemas = components['schemas'];

// How long a call may take with all that is sent for it: longer than an order whose answer is lost.
const timeoutMs = 45_000;

/**
 * Marina's client, with a key of yours. A call throws when it got no answer in time; the same call, with the same
 * Idempotency-Key, may then be made again. Whole numbers are exact up to 2^53: sums to ₦90 trillion.
 */
export function marinaClient(baseUrl: string, key: string): Marina {
  const client = createClient<paths>({
    baseUrl,
    headers: { Authorization: `Bearer ${key}` },
    bodySerializer: (body: unknown) => (body instanceof Uint8Array ? body : JSON.stringify(body)),
    fetch: send,
  });
  return client as Marina;
}

// Sends a request, and the same again as often as Retry-After asks for it and there is time.
async function send(request: Request): Promise<Response> {
  const endsAt = Date.now() + timeoutMs;
  const signal = AbortSignal.timeout(timeoutMs);
  // A POST without a key is done as often as it arrives.
  const isSafe = request.method !== 'POST' || request.headers.has('Idempotency-Key');
  const { url, method, headers } = request;
  // Read once: not every Node can clone a request again that was sent.
  const body = request.body === null ? null : await request.arrayBuffer();
  for (;;) {
    const response = await fetch(url, { method, headers, body, signal });
    // A proxy may write a date, which is no number.
    const waitMs = Number(response.headers.get('Retry-After')) * 1000;
    const asksAgain = response.status === 429 || (response.status === 503 && isSafe);
    if (!asksAgain || !(waitMs > 0) || Date.now() + waitMs > endsAt) return response;
    await response.body?.cancel();
    await sleep(waitMs);
  }
}

/** An error answer in place of the wanted one. `code` is for programs, the message for people. */
export class MarinaError extends Error {
  override readonly name = 'MarinaError';
  readonly status: number;
  readonly code: string | undefined;

  constructor(response: Response, body: Schemas['ErrorBody'] | undefined) {
    const { code, message } = body?.error ?? {};
    const path = new URL(response.url).pathname;
    const reason = code === undefined ? '' : ` ${code}: ${message}`;
    super(`${path} was answered ${response.status}${reason} (x-request-id ${response.headers.get('x-request-id')})`);
    this.status = response.status;
    this.code = code;
  }
}

/** The body of a good answer, with the response it came in; throws a MarinaError for any other. */
export async function answered<Data>(call: Promise<Answer<Data>>): Promise<{ data: Data; response: Response }> {
  const { data, error, response } = await call;
  if (data === undefined) throw new MarinaError(response, error);
  return { data, response };
}

type Answer<Data> =
  | { data: Data; error?: never; response: Response }
  | { data?: never; error: Schemas['ErrorBody']; response: Response };

/** openapi-fetch's calls, but for one thing: a member that the document does not have does not compile. */
export interface Marina {
  GET: Call<'get'>;
  POST: Call<'post'>;
  PUT: Call<'put'>;
  DELETE: Call<'delete'>;
}

type Call<Method extends 'get' | 'post' | 'put' | 'delete'> = <
  Path extends ClientPathsWithMethod<Client<paths>, Method>,
>(
  path: Path,
  ...request: Wanted<FetchOptions<paths[Path][Method]>>
) => Promise<FetchResponse<NonNullable<paths[Path][Method]>, object, 'application/json'>>;

type Wanted<Options> = Partial<Options> extends Options ? [Options?] : [Options];
