import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startApp } from '../../../src/gateway/app/app.ts';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { Supervisor, type Worker } from '../../../src/kit/worker.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

/** The workers that every process runs for itself. */
const own = ['broker-clock', 'environment', 'feed watch', 'health', 'key uses', 'recovery', 'secret key use'];
const ofEach = [...own, 'write-probe', 'writer'];
const ofRole = {
  api: ['keys without a MAC'],
  webhooks: ['dispatcher', 'webhooks'],
  worker: [
    ...['allocation', 'application', 'order', 'withdrawal'].map((kind) => `${kind}-key-retention`),
    ...['application', 'order', 'withdrawal'].map((kind) => `${kind}-reports`),
    ...['allocations', 'applications', 'orders', 'withdrawals'].map((kinds) => `reconcile-${kinds}`),
    ...['bulk-cancel-retention', 'feed-retention', 'unclaimed-report-retention', 'webhook-retention'],
    ...['audit-seals', 'bulk-cancels', 'ledger-check', 'proposal-expiry', 'reconciliation', 'relay', 'release-expiry'],
    'subscribers',
  ],
};

describe('the work of a process', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ MARINA_ROLES: 'api', MARINA_NATS_CONSUMERS: 'books' });
  });
  after(() => gateway.stop());

  for (const roles of [['api'], ['worker'], ['webhooks'], ['api', 'worker', 'webhooks']] as const) {
    it(`a process of the roles ${roles.join(', ')} does the work of each process and of its roles, and no other`, async (context) => {
      const begun: string[] = [];
      context.mock.method(Supervisor.prototype, 'start', ({ name }: Worker) => void begun.push(name));
      const app = await startApp(
        readConfig({ ...gateway.variables, MARINA_ROLES: roles.join(',') }),
        createLogger({ name: 'test', level: 'silent' }),
      );
      await app.stop();
      assert.deepEqual(begun.sort(), [...ofEach, ...roles.flatMap((role) => ofRole[role])].sort());
    });
  }
});
