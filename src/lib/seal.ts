import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Keys } from './key-ring.ts';

const formatByte = 1;
const nonceLength = 12;
const tagLength = 16;

/** An opened seal, with the id of the secret that it is under. */
interface Opened {
  readonly text: string;
  readonly keyId: string;
}

/**
 * Encrypts texts that must be read again, such as signing secrets in the database, with AES-256-GCM under the current key.
 * A sealed text opens under any key of the ring, but only for its owner: one that was copied to another owner's row is
 * refused. It does not name its key, because earlier versions must open it too.
 */
export class Seal {
  constructor(private readonly keys: Keys) {}

  /** Seals a text, differently each time. */
  seal(owner: string, text: string): Buffer {
    const nonce = randomBytes(nonceLength);
    const cipher = createCipheriv('aes-256-gcm', this.keys.all[0].key, nonce).setAAD(Buffer.from(owner));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from([formatByte]), nonce, cipher.getAuthTag(), sealed]);
  }

  /** Opens a seal. Throws if it is for another owner, under no key of the ring, or was changed. */
  open(owner: string, bytes: Buffer): string {
    return this.openNamed(owner, bytes).text;
  }

  /** Opens a seal in the same way, and says which key it is under. */
  openNamed(owner: string, bytes: Buffer): Opened {
    if (bytes[0] !== formatByte) throw new Error('what is sealed has a form that is not known');
    let cause: unknown;
    for (const { id: keyId, key } of this.keys.all) {
      try {
        return { text: openWith(key, owner, bytes), keyId };
      } catch (error) {
        cause = error;
      }
    }
    throw new Error('what is sealed cannot be opened: MARINA_SECRET_KEY lacks the key it was sealed with', { cause });
  }
}

function openWith(key: Buffer, owner: string, bytes: Buffer): string {
  const nonce = bytes.subarray(1, 1 + nonceLength);
  const tag = bytes.subarray(1 + nonceLength, 1 + nonceLength + tagLength);
  const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagLength })
    .setAAD(Buffer.from(owner))
    .setAuthTag(tag);
  const opened = Buffer.concat([cipher.update(bytes.subarray(1 + nonceLength + tagLength)), cipher.final()]);
  return opened.toString('utf8');
}
