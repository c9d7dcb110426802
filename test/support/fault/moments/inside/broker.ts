import { endAfter, type Watch } from './watch.ts';

type Callback = (error: unknown, answer?: unknown) => void;
type Call = (
  this: object,
  path: string,
  serialize: unknown,
  deserialize: unknown,
  request: unknown,
  metadata: unknown,
  options: unknown,
  callback: Callback,
) => { cancel(): void };

/** The parts of grpc-js that are wrapped. */
export interface Grpc {
  readonly Client: { readonly prototype: object };
  readonly Metadata: new () => object;
}

/** The services of the broker. Other calls steer the simulator. */
const brokersService = /^\/marina\.broker\.v1\.(\w+\/\w+)$/;
const [unavailable, deadlineExceeded] = [14, 4];

/** Watches each unary call to the broker. One that is refused is not sent; of one that is unknown, the answer is lost. */
export function watchBroker(grpc: Grpc, watch: Watch): void {
  const methods = grpc.Client.prototype as { makeUnaryRequest: Call };
  const send = methods.makeUnaryRequest;
  const errorOf = (code: number, details: string) =>
    Object.assign(new Error(`${code} ${details}`), { code, details, metadata: new grpc.Metadata() });
  methods.makeUnaryRequest = function (path, serialize, deserialize, request, metadata, options, callback) {
    const [, label] = brokersService.exec(path) ?? [];
    const fate = label === undefined ? undefined : watch.meet('call', label);
    const go = (answered: Callback) =>
      send.call(this, path, serialize, deserialize, request, metadata, options, answered);
    if (fate === undefined) return go(callback);
    if (fate === 'refused') {
      setImmediate(() => callback(errorOf(unavailable, 'refused by a test')));
      return { cancel() {} };
    }
    return go((error, answer) => {
      endAfter(fate);
      if (error || fate === 'frozen') callback(error, answer);
      else callback(errorOf(deadlineExceeded, 'the answer was lost by a test'));
    });
  };
}
