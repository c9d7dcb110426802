import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { type BulkCancel, BulkCancelState } from '../../../../../src/gen/marina/admin/v1/trading_pb.ts';
import { Call } from '../../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../../support/admin.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../../support/cluster.ts';
import { eventually } from '../../../../support/eventually.ts';
import { patient } from '../../../../support/patience.ts';

const longMs = patient(40_000);
const jobSize = 40;

describe('a job that cancels orders, whose process fails', () => {
  let cluster: Cluster;
  let api: GatewayProcess;
  let admin: ReturnType<typeof adminClient>;
  const workers: GatewayProcess[] = [];
  before(async () => {
    cluster = await Cluster.start({ MARINA_BULK_CANCELS_PER_SECOND: '50' });
    // Only the processes of a test work on jobs.
    api = await cluster.startGateway({ MARINA_ROLES: 'api,webhooks' });
    admin = adminClient(api.adminPort);
  });
  afterEach(async () => {
    for (const worker of workers.splice(0)) {
      worker.thaw();
      await worker.kill();
    }
  });
  after(async () => {
    admin.close();
    workers.push(await startWorker());
    await cluster.stop();
  });

  async function startWorker(): Promise<GatewayProcess> {
    const worker = await cluster.startGateway({ MARINA_ROLES: 'worker' });
    workers.push(worker);
    return worker;
  }

  /** A partner with open orders, and a job that cancels them. */
  async function beginJob(): Promise<{ partner: Partner; orders: string[]; id: string }> {
    const partner = await cluster.newPartner();
    const orders: string[] = [];
    for (let at = 0; at < jobSize; at += 1) {
      const { status, body } = await api.place(partner, { symbol: 'SIM-REST' });
      assert.equal(status, 201, JSON.stringify(body));
      orders.push(body.id);
    }
    const { bulkCancel } = await admin.trading.cancelOpenOrders(
      { partnerId: partner.id, atMost: jobSize, reason: 'a leaked key' },
      admin.options,
    );
    return { partner, orders, id: bulkCancel?.id ?? '' };
  }

  async function get(id: string): Promise<BulkCancel> {
    const { bulkCancel } = await admin.trading.getBulkCancel({ id }, admin.options);
    assert.ok(bulkCancel !== undefined);
    return bulkCancel;
  }

  /** Waits until so many orders have a result. */
  async function hasEnded(id: string, count: number): Promise<void> {
    await eventually(async () => {
      const { matched, left } = await get(id);
      assert.ok(Number(matched - left) >= count, `${left} of ${matched} are left`);
    }, longMs);
  }

  /** Waits for the job's end. Each order came to the broker with one cancel at most, and its counter tells what became of it. */
  async function checkEnd(id: string, orders: readonly string[], mayBeUnconfirmed: number): Promise<void> {
    const { matched, cancelled, notCancelable, unconfirmed, left } = await eventually(async () => {
      const job = await get(id);
      assert.equal(job.state, BulkCancelState.DONE, `${job.left} are left, ${job.unconfirmed} unconfirmed`);
      return job;
    }, longMs);
    assert.deepEqual([matched, cancelled + unconfirmed, notCancelable, left], [BigInt(jobSize), matched, 0n, 0n]);
    assert.ok(unconfirmed <= mayBeUnconfirmed, `${unconfirmed} are unconfirmed`);
    const { orders: open } = await admin.trading.listBulkCancelOrders({ id, result: 3, limit: 200 }, admin.options);
    const isOpen = new Set(open.map(({ orderId }) => orderId));
    for (const clientOrderId of orders) {
      const { messages } = await cluster.controls.listMessages({ clientOrderId }, callTimeout);
      const sent = messages.filter(({ call }) => call === Call.CANCEL_ORDER).length;
      const least = isOpen.has(clientOrderId) ? 0 : 1;
      assert.ok(sent >= least && sent <= 1, `${sent} cancels of ${clientOrderId} were sent`);
    }
  }

  it('goes on where it was after SIGKILL in the middle, and sends no cancel twice', async () => {
    const dying = await startWorker();
    const { orders, id } = await beginJob();
    await hasEnded(id, 5);
    await dying.kill();
    assert.ok((await get(id)).left > 0n, 'the job was not in its middle');
    await startWorker();
    await checkEnd(id, orders, 4);
  });

  it('goes on in another process while the first is frozen, and the first sends no cancel twice when it wakes up', async () => {
    const frozen = await startWorker();
    const { orders, id } = await beginJob();
    await hasEnded(id, 5);
    frozen.freeze();
    assert.ok((await get(id)).left > 0n, 'the job was not in its middle');
    await startWorker();
    await hasEnded(id, jobSize);
    frozen.thaw();
    await checkEnd(id, orders, 4);
  });
});
