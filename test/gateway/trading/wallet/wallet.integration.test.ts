import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { LedgerFaultKind } from '../../../../src/gen/marina/admin/v1/wallets_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';

describe('a wallet', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    // A wallet is falsified here.
    await gateway.stop(['ledgers']);
  });

  const credit = (partner: TestPartner, amountKobo: bigint, bankReference: string) =>
    admin.wallets.creditWallet({ partnerId: partner.id, amountKobo, bankReference }, admin.options);

  const get = (partner: TestPartner, path: string) => gateway.rest('GET', path, { key: partner.key });

  async function verify({ id: partnerId }: TestPartner, afterSequence = 0n) {
    // One replica walks one ledger at a time, and other tests walk theirs.
    for (;;) {
      try {
        return await admin.wallets.verifyLedger({ partnerId, afterSequence }, admin.options);
      } catch (error) {
        if ((error as { code?: number }).code !== status.RESOURCE_EXHAUSTED) throw error;
      }
    }
  }

  it('is empty at first', async () => {
    const partner = await gateway.newPartner();
    const wallet = await get(partner, '/v1/wallet');
    assert.equal(wallet.status, 200, wallet.text);
    assert.equal(
      wallet.text,
      '{"object":"wallet","available_kobo":0,"reserved_kobo":0,"posted_kobo":0,"withdrawn_kobo":0}',
    );
    const transfers = await get(partner, '/v1/wallet/transfers');
    assert.equal(transfers.text, '{"object":"list","has_more":false,"next_cursor":null,"data":[]}');
    const { complete, faults, entries } = await verify(partner);
    assert.deepEqual([complete, faults, entries], [true, [], 0n]);
  });

  it('holds what operators credited, and shows each payment as the contract writes it', async () => {
    const partner = await gateway.newPartner();
    const { recorded, credit: first } = await credit(partner, 250_000n, 'GTB/2026/0001');
    assert.equal(recorded, true);
    await credit(partner, 10n ** 15n, 'GTB/2026/0002');
    assert.deepEqual((await get(partner, '/v1/wallet')).body, {
      object: 'wallet',
      available_kobo: 1_000_000_000_250_000,
      reserved_kobo: 0,
      posted_kobo: 0,
      withdrawn_kobo: 0,
    });
    const { body } = await get(partner, '/v1/wallet/transfers?limit=1');
    assert.equal(body.has_more, true);
    const { body: last } = await get(partner, `/v1/wallet/transfers?limit=1&cursor=${body.next_cursor}`);
    assert.equal(last.has_more, false);
    assert.equal(last.next_cursor, null);
    const [entry] = last.data;
    assert.match(entry.id, /^wtr_[a-z2-7]{20}$/);
    assert.equal(entry.id, first?.id);
    assert.match(entry.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.deepEqual(entry, {
      object: 'wallet_transfer',
      id: entry.id,
      type: 'credit',
      amount_kobo: 250_000,
      available_change_kobo: 250_000,
      allocation: null,
      account: null,
      bank_reference: 'GTB/2026/0001',
      created_at: entry.created_at,
      withdrawal: null,
    });
  });

  it('is credited once for a bank reference, and the second call is told of the first entry', async () => {
    const partner = await gateway.newPartner();
    const first = await credit(partner, 500n, 'once');
    const second = await credit(partner, 500n, 'once');
    await assert.rejects(credit(partner, 900n, 'once'), {
      code: status.ALREADY_EXISTS,
      details: 'the bank reference is recorded with another amount, 500 kobo',
    });
    assert.equal(second.recorded, false);
    assert.deepEqual(second.credit, first.credit);
    assert.equal((await get(partner, '/v1/wallet')).body.available_kobo, 500);
    const audits = await gateway.database.read(
      statement(`SELECT operator, detail FROM audit_entries WHERE subject = ?`, partner.id),
    );
    assert.equal(audits.length, 1);
    assert.equal(audits[0]?.operator, 'tester');
    assert.equal(JSON.parse(String(audits[0]?.detail)).bankReference, 'once');
  });

  it('is credited once when many credit the same reference at once, whichever partner they credit', async () => {
    const partners = [await gateway.newPartner(), await gateway.newPartner()] as const;
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.allSettled(
        Array.from({ length: 20 }, (_, count) => credit(partners[count % 2] ?? partners[0], 100n, `raced ${round}`)),
      );
      const recorded = answers.filter((answer) => answer.status === 'fulfilled' && answer.value.recorded);
      assert.equal(recorded.length, 1);
      const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason.code] : []));
      assert.deepEqual(new Set(refused), new Set([status.ALREADY_EXISTS]));
      assert.equal(refused.length, 10, 'those of the other partner');
    }
    const sums = await Promise.all(partners.map(async (partner) => (await get(partner, '/v1/wallet')).body));
    assert.equal(sums[0].available_kobo + sums[1].available_kobo, 500);
    for (const partner of partners) assert.deepEqual((await verify(partner)).faults, []);
  });

  it('takes no payment that cannot be', async () => {
    const partner = await gateway.newPartner();
    const wrong: readonly [bigint, string, status][] = [
      [0n, 'good', status.INVALID_ARGUMENT],
      [-1n, 'good', status.INVALID_ARGUMENT],
      [10n ** 15n + 1n, 'good', status.INVALID_ARGUMENT],
      [1n, '', status.INVALID_ARGUMENT],
      [1n, ' space', status.INVALID_ARGUMENT],
      [1n, 'space ', status.INVALID_ARGUMENT],
      [1n, 'line\n', status.INVALID_ARGUMENT],
      [1n, 'x'.repeat(65), status.INVALID_ARGUMENT],
      [1n, 'référence', status.INVALID_ARGUMENT],
    ];
    for (const [amount, reference, code] of wrong) {
      await assert.rejects(credit(partner, amount, reference), { code }, `${amount} ${JSON.stringify(reference)}`);
    }
    await assert.rejects(credit({ ...partner, id: 'par_22222222222222222222' }, 1n, 'nobody'), {
      code: status.NOT_FOUND,
    });
    assert.equal((await get(partner, '/v1/wallet')).body.available_kobo, 0);
    assert.equal((await credit(partner, 1n, 'x'.repeat(64))).recorded, true);
    await gateway.database.write(
      statement('UPDATE wallets SET posted_kobo = 999999999999999999 WHERE partner_id = ?', partner.id),
    );
    await assert.rejects(credit(partner, 1n, 'one too many'), { code: status.FAILED_PRECONDITION });
  });

  it('is read with `read` alone, shows no other partner anything, and its pages stay as they are', async () => {
    const partner = await gateway.newPartner();
    const other = await gateway.newPartner();
    const blind = await gateway.newPartner({ scopes: [Scope.TRADE, Scope.FUND] });
    for (let count = 0; count < 7; count += 1) await credit(partner, BigInt(count + 1), `${partner.id} ${count}`);
    const first = await get(partner, '/v1/wallet/transfers?limit=3');
    await credit(partner, 100n, `${partner.id} later`);
    const second = await get(partner, `/v1/wallet/transfers?limit=3&cursor=${first.body.next_cursor}`);
    const amounts = [...first.body.data, ...second.body.data].map(({ amount_kobo }) => amount_kobo);
    assert.deepEqual(amounts, [7, 6, 5, 4, 3, 2]);
    for (const [path, param] of [
      [`/v1/wallet/transfers?cursor=${first.body.next_cursor}x`, 'cursor'],
      ['/v1/wallet/transfers?cursor=', 'cursor'],
      ['/v1/wallet/transfers?limit=0', 'limit'],
      ['/v1/wallet/transfers?limit=101', 'limit'],
      ['/v1/wallet/transfers?type=credit', 'type'],
      ['/v1/wallet?limit=1', 'limit'],
    ] as const) {
      const answer = await get(partner, path);
      assert.deepEqual(
        [answer.status, answer.body.error.code, answer.body.error.param],
        [400, 'invalid_request', param],
      );
    }
    const foreign = await get(other, `/v1/wallet/transfers?cursor=${first.body.next_cursor}`);
    assert.deepEqual([foreign.status, foreign.body.error.param], [400, 'cursor']);
    assert.deepEqual((await get(other, '/v1/wallet/transfers')).body.data, []);
    for (const path of ['/v1/wallet', '/v1/wallet/transfers']) {
      assert.equal((await get(blind, path)).body.error.code, 'insufficient_scope');
    }
  });

  it("lists a partner's payments and all wallets to operators, page by page", async () => {
    const partner = await gateway.newPartner();
    for (let count = 0; count < 5; count += 1) await credit(partner, 10n, `${partner.id} ${count}`);
    const first = await admin.wallets.listCredits({ partnerId: partner.id, limit: 3 }, admin.options);
    const beforeSequence = first.credits.at(-1)?.sequence ?? 0n;
    const rest = await admin.wallets.listCredits({ partnerId: partner.id, limit: 3, beforeSequence }, admin.options);
    const all = [...first.credits, ...rest.credits];
    assert.deepEqual(
      all.map(({ sequence, availableAfterKobo }) => [sequence, availableAfterKobo]),
      [5n, 4n, 3n, 2n, 1n].map((sequence) => [sequence, sequence * 10n]),
    );
    assert.deepEqual([first.hasMore, rest.hasMore], [true, false]);
    await assert.rejects(admin.wallets.listCredits({ partnerId: 'par_22222222222222222222' }, admin.options), {
      code: status.NOT_FOUND,
    });
    await assert.rejects(admin.wallets.listCredits({ partnerId: partner.id, limit: 1_001 }, admin.options), {
      code: status.INVALID_ARGUMENT,
    });
    const found = [];
    for (let after = '', more = true; more; ) {
      const page = await admin.wallets.listWallets({ limit: 2, afterPartnerId: after }, admin.options);
      found.push(...page.wallets);
      after = page.wallets.at(-1)?.partnerId ?? '';
      more = page.hasMore;
    }
    const ours = found.filter(({ partnerId }) => partnerId === partner.id);
    assert.deepEqual(
      ours.map(({ lastSequence, availableKobo }) => [lastSequence, availableKobo]),
      [[5n, 50n]],
    );
  });

  describe('whose ledger was touched by somebody who may', () => {
    async function creditedPartner(): Promise<TestPartner> {
      const partner = await gateway.newPartner();
      for (let count = 1; count <= 6; count += 1) await credit(partner, 10n * BigInt(count), `${partner.id} ${count}`);
      return partner;
    }

    async function faultsOf(partner: TestPartner) {
      const { complete, faults } = await verify(partner);
      assert.equal(complete, true);
      return faults.map(({ kind, sequence }) => [kind, Number(sequence)]);
    }

    const write = (partner: TestPartner, sql: string) => gateway.database.write(statement(sql, partner.id));

    it('is proven while nothing is wrong, from any entry on, and its last hash stays the same', async () => {
      const partner = await creditedPartner();
      const whole = await verify(partner);
      assert.deepEqual([whole.complete, whole.faults, whole.entries, whole.lastSequence], [true, [], 6n, 6n]);
      const part = await verify(partner, 4n);
      assert.deepEqual([part.complete, part.faults, part.entries], [true, [], 2n]);
      assert.deepEqual(part.lastHash, whole.lastHash);
      await assert.rejects(verify(partner, 7n), { code: status.NOT_FOUND });
      await assert.rejects(verify(partner, -1n), { code: status.INVALID_ARGUMENT });
      await assert.rejects(verify({ ...partner, id: 'par_22222222222222222222' }), { code: status.NOT_FOUND });
    });

    it('has a changed entry named', async () => {
      const partner = await creditedPartner();
      await write(partner, 'UPDATE wallet_transfers SET amount_kobo = 31 WHERE partner_id = ? AND sequence = 3');
      assert.deepEqual(await faultsOf(partner), [[LedgerFaultKind.CHANGED, 3]]);
    });

    it('has a missing entry named, the last one too', async () => {
      const partner = await creditedPartner();
      await write(partner, 'DELETE FROM wallet_transfers WHERE partner_id = ? AND sequence = 2');
      assert.deepEqual(await faultsOf(partner), [[LedgerFaultKind.MISSING, 2]]);
      await write(partner, 'DELETE FROM wallet_transfers WHERE partner_id = ? AND sequence = 6');
      assert.deepEqual(await faultsOf(partner), [
        [LedgerFaultKind.MISSING, 2],
        [LedgerFaultKind.MISSING, 6],
      ]);
    });

    it('has reordered entries named', async () => {
      const partner = await creditedPartner();
      for (const [from, to] of [
        [4, 99],
        [5, 4],
        [99, 5],
      ]) {
        await write(
          partner,
          `UPDATE wallet_transfers SET sequence = ${to} WHERE partner_id = ? AND sequence = ${from}`,
        );
      }
      assert.deepEqual(await faultsOf(partner), [
        [LedgerFaultKind.REORDERED, 4],
        [LedgerFaultKind.REORDERED, 5],
        [LedgerFaultKind.REORDERED, 6],
      ]);
    });

    it('has sums named that are not those of the ledger', async () => {
      const partner = await creditedPartner();
      await write(partner, 'UPDATE wallets SET available_kobo = available_kobo + 1 WHERE partner_id = ?');
      assert.deepEqual(await faultsOf(partner), [[LedgerFaultKind.WRONG_SUM, 0]]);
    });
  });
});
