import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const formatByte = 1;
const nonceLength = 12;
const tagLength = 16;

/**
 * Keeps signing secrets unreadable in the database. They must be had again, since every event is signed with them, so
 * they are sealed with AES-256-GCM under a key of the configuration. A sealed secret opens for its partner only: one that
 * was copied to another partner's row is refused.
 */
export class SecretSeal {
  constructor(private readonly key: Buffer) {}

  /** Seals a secret, differently each time. */
  seal(partnerId: string, secret: string): Buffer {
    const nonce = randomBytes(nonceLength);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce).setAAD(Buffer.from(partnerId));
    const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.from([formatByte]), nonce, cipher.getAuthTag(), sealed]);
  }

  /** The secret in a seal. Throws when it was sealed for another partner or under another key, or was changed since. */
  open(partnerId: string, bytes: Buffer): string {
    if (bytes[0] !== formatByte) throw new Error('a sealed secret has a form that is not known');
    const nonce = bytes.subarray(1, 1 + nonceLength);
    const tag = bytes.subarray(1 + nonceLength, 1 + nonceLength + tagLength);
    const cipher = createDecipheriv('aes-256-gcm', this.key, nonce, { authTagLength: tagLength })
      .setAAD(Buffer.from(partnerId))
      .setAuthTag(tag);
    try {
      const text = Buffer.concat([cipher.update(bytes.subarray(1 + nonceLength + tagLength)), cipher.final()]);
      return text.toString('utf8');
    } catch (error) {
      throw new Error('a sealed secret cannot be opened: MARINA_SECRET_KEY is not the one it was sealed with', {
        cause: error,
      });
    }
  }
}
