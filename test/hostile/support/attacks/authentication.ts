import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Attacker } from '../attacker.ts';
import { many } from './crowd.ts';
import { Endings, openSession, rawCall } from './grpc-client.ts';
import { HttpClient } from './http-client.ts';

/** What is guessed with, and what must go on to be good meanwhile. */
export interface GuessOptions {
  readonly prepared: Prepared;
  readonly kind: 'unknown' | 'forged' | 'other environment' | 'malformed';
}

export interface Prepared {
  /** Keys that are good, and that this gateway has not seen. */
  readonly unseen: string[];
  /** A partner's key that was revoked, and one of the same partner that is good. */
  readonly revoked: string;
  readonly good: string;
}

const guesses = 10_000;

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
export async function guessKeys(attacker: Attacker, { kind, prepared }: GuessOptions) {
  const rest = new Endings();
  const grpc = new Endings();
  const client = new HttpClient(attacker, 20);
  const session = await openSession(attacker, attacker.target.grpcPort);
  let at = 0;
  const lane = async (number: number) => {
    while (at < guesses && attacker.leftMs > -10_000) {
      const authorization = makers[kind](at++);
      if (number % 4 === 0) grpc.add(await rawCall(session, '/marina.gateway.v1.Limits/GetLimits', { authorization }));
      else rest.add(await client.send({ path: '/v1/limits', headers: { authorization } }));
    }
  };
  await Promise.all(many(20, lane));
  const good = await client.send({ path: '/v1/limits', headers: { authorization: `Bearer ${prepared.unseen.pop()}` } });
  client.close();
  session.destroy();
  return { rest: rest.counts, grpc: grpc.counts, good };
}

/** Uses a revoked key as often as it can, while its partner's good key is used as often as it may be. */
export async function floodRevoked(attacker: Attacker, { prepared }: GuessOptions) {
  const revoked = new Endings();
  const good = new Endings();
  const client = new HttpClient(attacker, 20);
  const flood = async () => {
    while (attacker.isOn) {
      revoked.add(await client.send({ path: '/v1/limits', headers: { authorization: `Bearer ${prepared.revoked}` } }));
    }
  };
  const use = async () => {
    while (attacker.isOn) {
      good.add(await client.send({ path: '/v1/limits', headers: { authorization: `Bearer ${prepared.good}` } }));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  await Promise.all([...many(10, flood), use()]);
  client.close();
  return { revoked: revoked.counts, good: good.counts };
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** A key as anybody can make one who has seen another: the form is right, and so is a plain checksum. */
function guess(environment: 'test' | 'live'): string {
  const body = `marina_${environment}_${[...randomBytes(72)].map((byte) => alphabet[byte & 31]).join('')}`;
  const sum = crc32(body);
  return body + many(6, (place) => alphabet[(sum >>> (5 * place)) & 31]).join('');
}
