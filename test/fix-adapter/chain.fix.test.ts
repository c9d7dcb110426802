/** The gateway, the FIX adapter and an exchange of QuickFIX: each is killed and cut off while partners trade. */
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { Chain } from '../support/fix/chain.ts';
import { type Fault, faults } from '../support/fix/chain-faults.ts';
import { whyNoAcceptor } from '../support/quickfix.ts';

const skip = (await whyNoAcceptor()) ?? false;
const adapterPoints = [
  'fix-order.before-store',
  'fix-order.stored',
  'fix-order.sent',
  'fix-report.before-apply',
  'fix-report.applied',
  'fix-cancel.stored',
  'fix-cancel.sent',
];
const gatewayPoints = [
  'order.stored',
  'order.sent',
  'order.recorded',
  'order-report.before-apply',
  'order-report.applied',
  'cancel.sent',
];

/** Kills the adapter when it comes by a point. */
const adapterDiesAt =
  (point: string): Fault =>
  async (chain) => {
    await chain.killAdapter();
    const armed = await chain.startAdapter({ MARINA_FIX_CRASH_POINT: point });
    await eventually(async () => {
      if (await chain.hasAdapter()) throw new Error(`it did not come by ${point}; its log is ${armed.kept.logPath}`);
    }, 60_000);
    await chain.startAdapter();
  };

const gatewayDiesAt =
  (point: string): Fault =>
  async (chain) => {
    await chain.gateway.kill();
    const armed = await chain.startGateway({ MARINA_CRASH_POINT: point });
    await armed.exited;
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
    ...Object.fromEntries(adapterPoints.map((point) => [`the adapter dies at ${point}`, adapterDiesAt(point)])),
    ...Object.fromEntries(gatewayPoints.map((point) => [`the gateway dies at ${point}`, gatewayDiesAt(point)])),
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
