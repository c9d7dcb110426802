import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { Webhooks } from '../gen/marina/admin/v1/webhooks_pb.ts';
import { createGrpcClient, type GrpcClient } from '../kit/grpc-client.ts';
import { Advice } from './advice.ts';
import { makeAuthority } from './certificates.ts';
import { writePrivately } from './files.ts';
import type { SandboxPartner } from './sandbox-file.ts';
import type { SeededPartner } from './seed.ts';

/** Whose events come to the receiver, at its path `/<id>`, and what they are verified with. */
export interface ReceiverPartner {
  readonly id: string;
  readonly name: string;
  readonly secret: string;
}

/** A message of the receiver to its parent. */
export type ReceiverSays =
  | { readonly type: 'ready'; readonly port: number }
  /** An event that was verified, or something that was not, as a line. */
  | { readonly type: 'received'; readonly line: string };

export interface RegisterOptions {
  readonly adminAddress: string;
  readonly operatorToken: string;
  readonly receiverPort: number;
  readonly partners: readonly SeededPartner[];
  /** The partners of an earlier start, whose secrets are known. */
  readonly kept: readonly SandboxPartner[];
  /** Tells the receiver of a partner. */
  readonly introduce: (partner: ReceiverPartner) => void;
}

/** Makes the receiver's certificate and key, and the authority that it is from: the gateway reads that at its start. */
export async function makeReceiverIdentity(dataDir: string): Promise<{ identityFile: string; authorityFile: string }> {
  const authority = await makeAuthority('Marina sandbox');
  const { key, cert } = await authority.issue(['127.0.0.1', 'localhost']);
  const [identityFile, authorityFile] = [
    join(dataDir, 'receiver-identity.pem'),
    join(dataDir, 'receiver-authority.pem'),
  ];
  writePrivately(identityFile, `${cert}\n${key}\n`);
  writeFileSync(authorityFile, authority.cert);
  return { identityFile, authorityFile };
}

type Call = { timeoutMs: number; metadata: Metadata };

/** Has each partner's events sent to the receiver, signed with a secret that the receiver knows. */
export async function registerReceiver(options: RegisterOptions): Promise<SandboxPartner[]> {
  const webhooks = createGrpcClient(Webhooks, options.adminAddress);
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${options.operatorToken}`);
  const call = { timeoutMs: 10_000, metadata };
  try {
    const registered: SandboxPartner[] = [];
    for (const partner of options.partners) {
      const url = receiverUrl(options.receiverPort, partner.id);
      const known = options.kept.find(({ id }) => id === partner.id)?.webhook_secret;
      const secret = await pointTo(webhooks, call, partner.id, url, known);
      options.introduce({ id: partner.id, name: partner.name, secret });
      registered.push({ ...partner, webhook_secret: secret, receiver_url: url });
    }
    return registered;
  } finally {
    webhooks.close();
  }
}

function receiverUrl(port: number, partnerId: string): string {
  return `https://127.0.0.1:${port}/${partnerId}`;
}

/** The port the receiver had at an earlier start; 0 when there was none. */
export function earlierPort(kept: readonly SandboxPartner[]): number {
  const url = kept[0]?.receiver_url;
  return url !== undefined && URL.canParse(url) ? Number(new URL(url).port) : 0;
}

async function pointTo(
  webhooks: GrpcClient<typeof Webhooks>,
  call: Call,
  partnerId: string,
  url: string,
  known: string | undefined,
): Promise<string> {
  try {
    await webhooks.moveEndpoint({ partnerId, url }, call);
  } catch (error) {
    if ((error as ServiceError).code !== status.NOT_FOUND) throw error;
    return (await webhooks.registerEndpoint({ partnerId, url }, call)).secret;
  }
  if (known !== undefined) return known;
  // An earlier start was cut off between the registration and its file.
  try {
    return (await webhooks.rotateSecret({ partnerId }, call)).secret;
  } catch (error) {
    if ((error as ServiceError).code !== status.FAILED_PRECONDITION) throw error;
    throw new Advice(
      `The webhook secret of ${partnerId} was lost, and rotated less than 24 hours ago.`,
      'Start from nothing: make clean.',
    );
  }
}
