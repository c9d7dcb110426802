import { type KeyRing, keysFor, Seal } from '../../../kit/key-ring.ts';
import { fixed } from '../../../kit/watched-files.ts';
import { endpoints } from '../../delivery/webhooks/table.ts';
import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';

/** A seal in the database, and the secret that it is under. */
export interface Sealed {
  readonly partnerId: string;
  readonly field: 'secret' | 'oldSecret';
  readonly bytes: Buffer;
  /** Undefined if no key of the ring opens it. */
  readonly opened: { readonly text: string; readonly keyId: string } | undefined;
}

const maxRead = 200;
const shown = endpoints.only('partnerId', 'secret', 'oldSecret');

/** The seals of webhook secrets, some at a time. */
export async function* sealedSecrets(database: Database, seal: Seal): AsyncGenerator<readonly Sealed[]> {
  let after = '';
  for (;;) {
    const rows = await database.read(
      statement(
        `SELECT ${shown.list} FROM webhook_endpoints WHERE partner_id > ? ORDER BY partner_id LIMIT ${maxRead}`,
        after,
      ),
    );
    const read = rows.map(shown.read);
    yield read.flatMap(({ partnerId, secret, oldSecret }): Sealed[] => [
      opened(seal, { partnerId, field: 'secret', bytes: secret }),
      ...(oldSecret === null ? [] : [opened(seal, { partnerId, field: 'oldSecret', bytes: oldSecret })]),
    ]);
    const last = read.at(-1);
    if (last === undefined || rows.length < maxRead) return;
    after = last.partnerId;
  }
}

function opened(seal: Seal, sealed: Omit<Sealed, 'opened'>): Sealed {
  try {
    return { ...sealed, opened: seal.openNamed(sealed.partnerId, sealed.bytes) };
  } catch {
    return { ...sealed, opened: undefined };
  }
}

/**
 * Seals a text again, unless its field has other bytes by now. The endpoint's revision stays: it means the same, and a process
 * takes over a row of the same revision too.
 */
export function sealAgain(seal: Seal, { partnerId, field, bytes }: Sealed, text: string): Statement {
  const same = field === 'secret' ? { partnerId, secret: bytes } : { partnerId, oldSecret: bytes };
  const sealed = seal.seal(partnerId, text);
  return endpoints.set(same, field === 'secret' ? { secret: sealed } : { oldSecret: sealed });
}

export function webhookSeal(ring: KeyRing): Seal {
  return new Seal(keysFor(fixed(ring), 'webhook secrets'));
}
