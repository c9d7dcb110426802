import { hkdfSync } from 'node:crypto';

/** Derives a key of its own for one use of the gateway's secret (`MARINA_SECRET_KEY`). */
export function subkey(secret: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `marina ${use}`, 32));
}
