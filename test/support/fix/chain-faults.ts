import { setTimeout as delay } from 'node:timers/promises';
import type { Chain } from './chain.ts';

/** Something that goes wrong in a chain, and what mends it. */
export type Fault = (chain: Chain) => Promise<void>;

/** Everything that can go wrong while the processes live, or as they are killed at any moment. */
export const faults: Readonly<Record<string, Fault>> = {
  'the exchange is killed': (chain) => chain.crashExchange(500),
  'the adapter is killed': async (chain) => {
    await chain.killAdapter();
    await chain.startAdapter();
  },
  'the gateway is killed': async (chain) => {
    await chain.gateway.kill();
    await chain.startGateway();
  },
  'a standby takes over': async (chain) => {
    await chain.startAdapter();
    await chain.killAdapter();
  },
  'the line to the exchange is cut before it takes an order': (chain) =>
    chain.acceptor.onNext({ type: 'D', action: 'disconnectBefore' }),
  'the line to the exchange is cut after it took an order': (chain) =>
    chain.acceptor.onNext({ type: 'D', action: 'disconnectAfter' }),
  'the line to the exchange is cut after it took a cancel': (chain) =>
    chain.acceptor.onNext({ type: 'F', action: 'disconnectAfter' }),
  'the exchange stands still for a while': async (chain) => {
    await chain.acceptor.freeze();
    await delay(2_500);
    await chain.acceptor.thaw();
  },
  'bytes to the exchange are held back': async (chain) => {
    chain.wire.set('toServer', { hold: true });
    await delay(1_500);
    chain.wire.heal();
  },
  'bytes from the exchange are held back, and the line is cut': async (chain) => {
    chain.wire.set('toClient', { hold: true });
    await delay(700);
    chain.wire.reset();
    chain.wire.heal();
  },
  'the line between gateway and adapter is cut': async (chain) => {
    chain.calls.reset();
  },
  'answers to the gateway are swallowed': async (chain) => {
    chain.calls.set('toClient', { blackhole: true }, 'present');
    await delay(1_200);
    chain.calls.reset();
  },
  'the exchange refuses the Logon for a while': async (chain) => {
    await chain.acceptor.onLogon({ as: 'logout', text: 'not now' });
    await chain.acceptor.disconnect();
    await delay(1_500);
    await chain.acceptor.onLogon({ as: 'accept' });
  },
  'numbers of the exchange are missing': async (chain) => {
    await chain.acceptor.skipOutgoing(3);
  },
  'orders are ignored by the exchange, which has their numbers': (chain) =>
    chain.acceptor.onNext({ type: 'D', action: 'ignore', count: 2 }),
};
