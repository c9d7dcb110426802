import { endAfter, type Watch } from './watch.ts';

type Write = (this: { destroy(error: Error): void }, chunk: unknown, ...rest: unknown[]) => boolean;

/** The parts of node:net that are wrapped. */
export interface Net {
  readonly Socket: { readonly prototype: object };
}

/** MsgType is the third field. */
const headerBytes = 100;
/** Messages without a promise, which come from time to time: Heartbeat and TestRequest. */
const ignored = new Set(['0', '1']);

/** Watches each FIX message to the exchange. One that is refused or unknown takes the connection with it. */
export function watchFix({ Socket }: Net, watch: Watch): void {
  const methods = Socket.prototype as { write: Write };
  const write = methods.write;
  methods.write = function (chunk, ...rest) {
    const label = labelOf(chunk);
    const fate = label === undefined ? undefined : watch.meet('send', label);
    if (fate === undefined) return write.call(this, chunk, ...rest);
    if (fate === 'refused') {
      this.destroy(connectionReset());
      return false;
    }
    return write.call(this, chunk, () => {
      endAfter(fate);
      if (fate !== 'frozen') this.destroy(connectionReset());
    });
  };
}

/** The type of the message, as in `D`. */
function labelOf(chunk: unknown): string | undefined {
  if (!Buffer.isBuffer(chunk) || !chunk.subarray(0, 5).equals(Buffer.from('8=FIX'))) return undefined;
  const fields = chunk.toString('latin1', 0, headerBytes).split('\u0001');
  const type = fields.find((field) => field.startsWith('35='))?.slice('35='.length) ?? '';
  return ignored.has(type) ? undefined : type;
}

function connectionReset(): Error {
  return Object.assign(new Error('broken by a test'), { code: 'ECONNRESET' });
}
