/** The gateway, the FIX adapter and an exchange of QuickFIX: each is killed and cut off while partners trade. */
import { after, before, describe, it } from 'node:test';
import { EndedEarly } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { fated } from '../support/fault/moments/fated.ts';
import { Chain } from '../support/fix/chain.ts';
import { type Fault, faults } from '../support/fix/chain-faults.ts';
import { whyNoAcceptor } from '../support/quickfix.ts';

const skip = (await whyNoAcceptor()) ?? false;
const [orderStored, reported] = [
  'update fix_numbers, insert fix_orders, insert fix_submissions',
  'update fix_numbers, update fix_orders, insert fix_reports',
];
const adapterMoments = {
  'before it stores an order': { kind: 'commit', label: orderStored, fate: 'before' },
  'after it has stored an order': { kind: 'commit', label: orderStored, fate: 'after' },
  'after it has sent an order': { kind: 'send', label: 'D', fate: 'after' },
  'before it stores a report': { kind: 'commit', label: reported, fate: 'before' },
  'after it has stored a report': { kind: 'commit', label: reported, fate: 'after' },
  'after it has stored a cancel': { kind: 'commit', label: 'update fix_numbers, insert fix_cancels', fate: 'after' },
  'after it has sent a cancel': { kind: 'send', label: 'F', fate: 'after' },
} as const;
const changed = 'update orders, insert order_steps, insert outbox, insert feed_events, update partners';
const gatewayMoments = {
  'before it sends an order': { kind: 'call', label: 'Orders/SubmitOrder', fate: 'before' },
  'after it has sent an order': { kind: 'call', label: 'Orders/SubmitOrder', fate: 'after' },
  'before it stores an outcome or a report': { kind: 'commit', label: changed, fate: 'before' },
  'after it has sent a cancel': { kind: 'call', label: 'Orders/CancelOrder', fate: 'after' },
} as const;
type Moment = Parameters<typeof fated>[1];

/** Kills the adapter when it comes to a moment. */
const adapterDies =
  (moment: Moment): Fault =>
  async (chain) => {
    await chain.killAdapter();
    const armed = await chain.startAdapter(fated(chain.cluster.folder, moment));
    await eventually(async () => {
      if (await chain.hasAdapter()) throw new Error(`the moment did not come; its log is ${armed.kept.logPath}`);
    }, 60_000);
    await chain.startAdapter();
  };

const gatewayDies =
  (moment: Moment): Fault =>
  async (chain) => {
    await chain.gateway.kill();
    const armed = await chain.startGateway(fated(chain.cluster.folder, moment)).catch((error: unknown) => {
      // The moment may come before the gateway is ready.
      if (!(error instanceof EndedEarly)) throw error;
    });
    await armed?.exited;
    await chain.startGateway();
  };

describe('orders over the chain of gateway, FIX adapter and exchange', { skip, timeout: 900_000 }, () => {
  let chain: Chain;
  before(async () => {
    chain = await Chain.start();
  });
  after(() => chain?.stop());

  const cases: Readonly<Record<string, Fault>> = {
    ...faults,
    ...Object.fromEntries(
      Object.entries(adapterMoments).map(([at, moment]) => [`the adapter dies ${at}`, adapterDies(moment)]),
    ),
    ...Object.fromEntries(
      Object.entries(gatewayMoments).map(([at, moment]) => [`the gateway dies ${at}`, gatewayDies(moment)]),
    ),
  };
  it('are sent once, and every trade is in the feed once, whatever is killed and cut', async (t) => {
    chain.trade(400_000);
    await chain.goesOn();
    for (const [name, fault] of Object.entries(cases)) {
      await t.test(name, async () => {
        await fault(chain);
        await chain.goesOn();
      });
    }
    await chain.settleAndCheck();
  });
});
