import { endAfter, type Watch } from './watch.ts';

interface Controller {
  abort(reason: Error): void;
}

interface Handler {
  onRequestStart?(controller: Controller, context: unknown): void;
  onResponseStart?(controller: Controller, ...rest: unknown[]): void;
  onResponseData?(controller: Controller, chunk: Buffer): void;
  onResponseEnd?(controller: Controller, trailers: unknown): void;
  onResponseError?(controller: Controller | undefined, error: Error): void;
}

interface Request {
  readonly method: string;
  readonly body?: unknown;
}

type Dispatch = (this: object, request: Request, handler: Handler) => boolean;

/** The parts of undici that are wrapped. */
export interface Undici {
  readonly Client: { readonly prototype: object };
}

/** Watches each POST to a partner's endpoint. */
export function watchWebhooks({ Client }: Undici, watch: Watch): void {
  const methods = Client.prototype as { dispatch: Dispatch };
  const dispatch = methods.dispatch;
  methods.dispatch = function (request, handler) {
    const label = request.method === 'POST' ? labelOf(request.body) : undefined;
    const fate = label === undefined ? undefined : watch.meet('post', label);
    if (fate === undefined || fate === 'frozen') return dispatch.call(this, request, handler);
    if (fate === 'refused') {
      setImmediate(() => handler.onResponseError?.(undefined, errorOf('ECONNREFUSED')));
      return true;
    }
    return dispatch.call(this, request, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onResponseStart: (controller) => {
        endAfter(fate);
        controller.abort(errorOf('ECONNRESET'));
      },
      onResponseData: () => {},
      onResponseEnd: () => {},
      onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
    });
  };
}

function errorOf(code: string): Error {
  return Object.assign(new Error('broken by a test'), { code });
}

/** The type of the event that is sent. */
function labelOf(body: unknown): string | undefined {
  if (!Buffer.isBuffer(body)) return undefined;
  return String((JSON.parse(body.toString('utf8')) as { type?: unknown }).type);
}
