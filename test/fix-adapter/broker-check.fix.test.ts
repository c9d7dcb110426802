import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { checks } from '../../src/broker-check/checks.ts';
import { runChecks } from '../../src/broker-check/run.ts';
import { account, startTestSimulator } from '../simulator/fixture.ts';
import { prepareAccount, simulatorSettings } from '../support/broker-check.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { createFixDatabase, startAdapterProcess } from '../support/fix/adapter.ts';
import { startAcceptor, whyNoAcceptor } from '../support/quickfix.ts';

const skip = (await whyNoAcceptor()) ?? false;

/** The exchange's trades are not in the records of this back office, which is a simulator with an exchange of its own. */
const notInThisChain = ['trades-of-orders', 'statement-of-orders'];
/** The adapter never says that its record is complete. */
const notOffered = ['complete-until-stated', 'complete-until-past'];

it('the FIX adapter keeps the promises of the protocol, killed and cut off too', { skip }, async () => {
  const backOffice = await startTestSimulator();
  await prepareAccount(backOffice.controls, account);
  const database = await createFixDatabase();
  after(() => database.drop());
  const acceptor = await startAcceptor({ target: 'MARINA' });
  await acceptor.onOrder({ as: 'rest' });
  await acceptor.onOrder({ as: 'parts', symbol: 'SIM-PARTS' });
  await acceptor.onOrder({ as: 'reject', symbol: 'SIM-REJECT' });
  const line = await FaultProxy.start(`127.0.0.1:${acceptor.port}`);
  after(() => line.close());
  const start = async (port: number) => {
    const started = await startAdapterProcess({
      MARINA_FIX_DATABASE_URL: database.url,
      MARINA_FIX_ADDRESS: line.address,
      MARINA_FIX_BACK_OFFICE_ADDRESS: `127.0.0.1:${backOffice.port}`,
      MARINA_FIX_PORT: String(port),
    });
    const active = await started.active();
    active.orders.close();
    active.submissions.close();
    return { ...active, ...started };
  };
  let adapter = await start(0);
  const hooks = {
    restart: async () => {
      await adapter.kept.kill();
      adapter = await start(adapter.port);
    },
    cut: async () => {
      await line.refuse();
      line.reset();
    },
    mend: () => line.accept(),
  };
  const results = await runChecks(checks, simulatorSettings(adapter.port, account, { hooks }));
  const others = results.filter(({ verdict }) => verdict !== 'passed');
  const details = others.map((each) => JSON.stringify(each)).join('\n');
  const named = (verdict: string) => others.filter((each) => each.verdict === verdict).map(({ id }) => id);
  assert.deepEqual(named('failed'), notInThisChain, details);
  assert.deepEqual(named('not offered'), notOffered, details);
  assert.deepEqual(named('not run'), [], details);
  const counts = [...acceptor.receivedOrders().values()];
  assert.ok(counts.length > 0 && counts.every((count) => count === 1), 'the exchange received no order twice');
  await adapter.kept.stop();
});
