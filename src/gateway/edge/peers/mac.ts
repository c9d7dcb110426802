import { timingSafeEqual } from 'node:crypto';
import { hmacUnder, type Keys } from '../../../kit/key-ring.ts';

const macBytes = 16;
const macForm = /^[\w-]{22}$/;

/**
 * The MAC of what gateways tell each other through NATS: HMAC-SHA256, 128 bits, under a key derived from the ring. Whoever
 * can publish to NATS and has no secret of the ring can make none.
 */
export class PeerMac {
  constructor(private readonly keys: Keys) {}

  /** The MAC under the current key, in 22 characters. `context`: what it is and where it is said, so that it means nothing elsewhere. */
  make(context: readonly (string | number)[], text: string): string {
    return this.#under(this.keys.all[0].key, context, text).toString('base64url');
  }

  /** Whether a MAC is one of this text in this context, under any key of the ring. */
  isOf(mac: string, context: readonly (string | number)[], text: string): boolean {
    if (!macForm.test(mac)) return false;
    const bytes = Buffer.from(mac, 'base64url');
    return this.keys.all.some(({ key }) => timingSafeEqual(bytes, this.#under(key, context, text)));
  }

  #under(key: Buffer, context: readonly (string | number)[], text: string): Buffer {
    return hmacUnder(key).update(JSON.stringify(context)).update('\n').update(text).digest().subarray(0, macBytes);
  }
}
