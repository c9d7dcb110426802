import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const formatByte = 1;
const nonceLength = 12;
const tagLength = 16;

/**
 * Encrypts texts that must be read again, such as signing secrets in the database, with AES-256-GCM under a configured
 * key. A sealed text opens only for its owner: one that was copied to another owner's row is refused.
 */
export class Seal {
  constructor(private readonly key: Buffer) {}

  /** Seals a text, differently each time. */
  seal(owner: string, text: string): Buffer {
    const nonce = randomBytes(nonceLength);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce).setAAD(Buffer.from(owner));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from([formatByte]), nonce, cipher.getAuthTag(), sealed]);
  }

  /** Opens a seal. Throws if it is for another owner, under another key, or was changed. */
  open(owner: string, bytes: Buffer): string {
    if (bytes[0] !== formatByte) throw new Error('what is sealed has a form that is not known');
    const nonce = bytes.subarray(1, 1 + nonceLength);
    const tag = bytes.subarray(1 + nonceLength, 1 + nonceLength + tagLength);
    const cipher = createDecipheriv('aes-256-gcm', this.key, nonce, { authTagLength: tagLength })
      .setAAD(Buffer.from(owner))
      .setAuthTag(tag);
    try {
      const opened = Buffer.concat([cipher.update(bytes.subarray(1 + nonceLength + tagLength)), cipher.final()]);
      return opened.toString('utf8');
    } catch (error) {
      throw new Error('what is sealed cannot be opened: MARINA_SECRET_KEY is not the one it was sealed with', {
        cause: error,
      });
    }
  }
}

/** Derives the key of one use from the gateway's secret (`MARINA_SECRET_KEY`). */
export function subkey(secret: Buffer, use: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `marina ${use}`, 32));
}
