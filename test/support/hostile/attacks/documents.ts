import type { Attacker } from '../attacker.ts';
import { many } from './crowd.ts';
import { Endings } from './grpc-client.ts';
import { HttpClient } from './http-client.ts';

export { heldUploads } from './grpc-standing.ts';

export interface DocumentOptions {
  readonly prepared: {
    /** Applications of the hostile partner that take documents. */
    readonly applications: readonly string[];
    /** Files in base64 with their media types. */
    readonly files: Readonly<Record<string, readonly { readonly type: string; readonly base64: string }[]>>;
  };
  /** Which files are sent. */
  readonly file: string;
  readonly atOnce: number;
}

const documentTypes = ['photo', 'government_id', 'utility_bill', 'signature'];

/** Sends files, many at once, and counts the answers. */
export async function sendFiles(attacker: Attacker, { prepared, file, atOnce }: DocumentOptions) {
  const { applications, files } = prepared;
  const kinds = (files[file] ?? []).map(({ type, base64 }) => ({ type, body: Buffer.from(base64, 'base64') }));
  const endings = new Endings();
  const client = new HttpClient(attacker, atOnce);
  let at = 0;
  const one = async () => {
    while (attacker.isOn) {
      const kind = kinds[at % kinds.length];
      const application = applications[at % applications.length];
      const documentType = documentTypes[Math.floor(at / applications.length) % documentTypes.length];
      at += 1;
      if (kind === undefined) throw new Error(`there are no files of ${file}`);
      endings.add(
        await client.send({
          method: 'PUT',
          path: `/v1/applications/${application}/documents/${documentType}`,
          headers: { authorization: `Bearer ${attacker.target.key}`, 'content-type': kind.type },
          body: kind.body,
        }),
      );
    }
  };
  await Promise.all(many(atOnce, one));
  client.close();
  return endings.counts;
}
