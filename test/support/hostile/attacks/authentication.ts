import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Attacker } from '../attacker.ts';
import { many, paced, pause } from './crowd.ts';
import { Endings, openSession, rawCall } from './grpc-client.ts';
import { HttpClient } from './http-client.ts';

/** The guesser's material, and the calls that must stay good meanwhile. */
export interface GuessOptions {
  readonly prepared: Prepared;
  readonly perSecond: number;
  readonly turn: number;
  readonly kind: 'unknown' | 'forged' | 'other environment' | 'malformed';
}

export interface Prepared {
  /** Keys that are good, and that this gateway has not seen: one for each turn, since a key that was used is known. */
  readonly unseen: string[];
  /** A partner's key that was revoked, and one of the same partner that is good. */
  readonly revoked: string;
  readonly good: string;
}

const makers: Record<GuessOptions['kind'], (at: number) => string> = {
  unknown: () => `Bearer ${guess('test')}`,
  forged: () => `Bearer ${guess('test').slice(0, -6)}aaaaaa`,
  'other environment': () => `Bearer ${guess('live')}`,
  malformed: (at) => malformed[at % malformed.length]?.() ?? '',
};

/** In the order of what a reader of headers may stumble over. */
const malformed: readonly (() => string)[] = [
  () => '',
  () => 'Bearer',
  () => 'Bearer  ',
  () => 'Basic dXNlcjpwYXNz',
  () => `bearer\t${guess('test')}`,
  () => `Bearer ${'a'.repeat(4_000)}`,
  () => `Bearer marina_test_${'é'.repeat(78)}`,
  () => `Bearer ${guess('test')}, Bearer ${guess('test')}`,
  () => randomBytes(60).toString('base64'),
  () => `Bearer marina_test_${'a'.repeat(78)}`,
];

/** Tries keys over REST and gRPC, and then a good one from the same address, which must not suffer. */
export async function guessKeys(attacker: Attacker, { kind, perSecond, prepared, turn }: GuessOptions) {
  const rest = new Endings();
  const grpc = new Endings();
  const client = new HttpClient(attacker, 20);
  let session = await openSession(attacker, attacker.target.grpcPort);
  await paced(attacker, perSecond, async (at) => {
    const authorization = makers[kind](at);
    if (at % 4 > 0) return rest.add(await client.send({ path: '/v1/limits', headers: { authorization } }));
    // A client that was disconnected comes again.
    if (session.closed || session.destroyed) session = await openSession(attacker, attacker.target.grpcPort);
    grpc.add(await rawCall(session, '/marina.gateway.v1.Limits/GetLimits', { authorization }));
  });
  const good = await useGood(client, prepared.unseen[turn] ?? '');
  client.close();
  session.destroy();
  return { rest: rest.counts, grpc: grpc.counts, good };
}

/** An address that was thrown out may have to wait a little before it may connect again. */
async function useGood(client: HttpClient, key: string): Promise<string> {
  let ending = '';
  for (let attempt = 0; attempt < 40 && !/^\d/.test(ending); attempt += 1) {
    if (attempt > 0) await pause(250);
    ending = await client.send({ path: '/v1/limits', headers: { authorization: `Bearer ${key}` } });
  }
  return ending;
}

/** Uses a revoked key very often, while its partner's good key is used as often as it may be. */
export async function useRevoked(attacker: Attacker, { perSecond, prepared }: GuessOptions) {
  const client = new HttpClient(attacker, 20);
  const use = async (key: string, often: number) => {
    const endings = new Endings();
    const request = { path: '/v1/limits', headers: { authorization: `Bearer ${key}` } };
    await paced(attacker, often, async () => endings.add(await client.send(request)));
    return endings.counts;
  };
  const [revoked, good] = await Promise.all([use(prepared.revoked, perSecond), use(prepared.good, 10)]);
  client.close();
  return { revoked, good };
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** A key as anybody can make one who has seen another: the form is right, and so is a plain checksum. */
function guess(environment: 'test' | 'live'): string {
  const body = `marina_${environment}_${[...randomBytes(72)].map((byte) => alphabet[byte & 31]).join('')}`;
  const sum = crc32(body);
  return body + many(6, (place) => alphabet[(sum >>> (5 * place)) & 31]).join('');
}
