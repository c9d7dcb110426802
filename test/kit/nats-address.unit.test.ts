import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { natsAddress } from '../../src/kit/nats-address.ts';

describe('the address of NATS', () => {
  it('the address of NATS names each server with its port, and the one login of all', () => {
    const one = { servers: ['one:4222'], hosts: ['one'], login: undefined, saysTls: false };
    const two = { servers: ['one:4222', 'two:4223'], hosts: ['one', 'two'], login: undefined, saysTls: false };
    for (const [urls, address] of [
      ['nats://one', one],
      ['one', one],
      ['one:4222', one],
      ['tls://one', { ...one, saysTls: true }],
      ['nats://one,nats://two:4223', two],
      [' one , nats://two:4223 ', two],
      ['nats://one,tls://two:4223', { ...two, saysTls: true }],
      ['tls://one,nats://two:4223', { ...two, saysTls: true }],
      ['nats://[::1]:1,192.0.2.1', { ...one, servers: ['[::1]:1', '192.0.2.1:4222'], hosts: ['::1', '192.0.2.1'] }],
      ['nats://ada:word@one', { ...one, login: { user: 'ada', pass: 'word' } }],
      ['nats://:word@one', { ...one, login: { user: '', pass: 'word' } }],
      ['token@one', { ...one, login: { auth_token: 'token' } }],
      ['nats://one,ada:word@two:4223', { ...two, login: { user: 'ada', pass: 'word' } }],
      ['ada:word@one,two:4223', { ...two, login: { user: 'ada', pass: 'word' } }],
      ['ada:word@one,ada:word@two:4223', { ...two, login: { user: 'ada', pass: 'word' } }],
      ['token@one,token@two:4223', { ...two, login: { auth_token: 'token' } }],
    ] as const) {
      assert.deepEqual(natsAddress(urls), address, urls);
    }
  });

  it('an address of NATS with a path, two logins or another protocol is refused without a word of a secret', () => {
    for (const [urls, wrong] of [
      ['nats://one/path', /has an unknown part after the host/],
      ['one,two/path', /has an unknown part after the host/],
      ['ada:canary@one,ada:other@two', /the same user and password, or the same token, for all servers/],
      ['ada:canary@one,eve:canary@two', /the same user and password/],
      ['canary@one,other@two', /the same user and password/],
      ['canary@one,canary:word@two', /the same user and password/],
      ['ada:canary@one,two,ada:other@three', /the same user and password/],
      ['ws://canary@one', /must be nats:\/\/ or tls:\/\/ and one host/],
      ['one,,two', /must be nats:\/\/ or tls:\/\/ and one host/],
      ['', /must be nats:\/\/ or tls:\/\/ and one host/],
    ] as const) {
      assert.throws(
        () => natsAddress(urls),
        ({ message }: Error) => wrong.test(message) && !message.includes('canary'),
        urls,
      );
    }
  });
});
