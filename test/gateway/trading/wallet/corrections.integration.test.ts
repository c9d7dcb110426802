import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { WalletCorrectionKind } from '../../../../src/gen/marina/admin/v1/wallets_pb.ts';
import { WalletTransferType } from '../../../../src/gen/marina/gateway/v1/wallet_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { verifyLedger } from '../../../support/ledger.ts';
import { fc } from '../../../support/properties.ts';
import { connectCall, grpcClients } from '../../../support/protocols.ts';

describe('money that operators take out of a wallet', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  let grpc: ReturnType<typeof grpcClients>;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
    grpc = grpcClients(gateway);
  });
  after(async () => {
    grpc.close();
    admin.close();
    await gateway.stop();
  });

  const credit = ({ id: partnerId }: TestPartner, amountKobo: bigint, bankReference: string) =>
    admin.wallets.creditWallet({ partnerId, amountKobo, bankReference }, admin.options);
  const debit = ({ id: partnerId }: TestPartner, amountKobo: bigint, bankReference: string) =>
    admin.wallets.debitWallet({ partnerId, amountKobo, bankReference, reason: 'a test' }, admin.options);
  const reverse = (
    { id: partnerId }: TestPartner,
    amountKobo: bigint,
    creditBankReference: string,
    bankReference: string,
  ) =>
    admin.wallets.reverseCredit(
      { partnerId, amountKobo, creditBankReference, bankReference, reason: 'a test' },
      admin.options,
    );

  /** The same of at most so much as is available. */
  const reverseUpTo = (
    { id: partnerId }: TestPartner,
    amountKobo: bigint,
    creditBankReference: string,
    bankReference: string,
  ) =>
    admin.wallets.reverseCredit(
      { partnerId, amountKobo, creditBankReference, bankReference, reason: 'a test', upToAvailable: true },
      admin.options,
    );

  async function get({ key }: TestPartner, path: string) {
    const answer = await gateway.rest('GET', path, { key });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  const available = async (partner: TestPartner) => BigInt((await get(partner, '/v1/wallet')).available_kobo);

  async function audited({ id }: TestPartner) {
    const rows = await gateway.database.read(
      statement('SELECT action, operator, detail FROM audit_entries WHERE subject = ? ORDER BY id', id),
    );
    return rows.map(({ action, operator, detail }) => [action, operator, JSON.parse(String(detail))]);
  }

  it('is a debit in the ledger, once, that the partner sees over each protocol', async () => {
    const partner = await gateway.newPartner();
    await credit(partner, 1_000n, `${partner.id} in`);
    const first = await debit(partner, 300n, `${partner.id} out`);
    const again = await debit(partner, 300n, `${partner.id} out`);
    assert.deepEqual([first.recorded, again.recorded], [true, false]);
    assert.deepEqual(again.correction, first.correction);
    assert.deepEqual(
      [first.correction?.kind, first.correction?.sequence, first.correction?.availableAfterKobo],
      [WalletCorrectionKind.DEBIT, 2n, 700n],
    );
    assert.deepEqual(await get(partner, '/v1/wallet'), {
      object: 'wallet',
      available_kobo: 700,
      reserved_kobo: 0,
      posted_kobo: 0,
      withdrawn_kobo: 0,
    });
    const { data } = await get(partner, '/v1/wallet/transfers?limit=1');
    assert.deepEqual(data, [
      {
        object: 'wallet_transfer',
        id: first.correction?.id,
        type: 'debit',
        amount_kobo: 300,
        available_change_kobo: -300,
        allocation: null,
        account: null,
        bank_reference: `${partner.id} out`,
        created_at: data[0].created_at,
        withdrawal: null,
      },
    ]);
    const [overGrpc] = (await grpc.wallet.listTransfers({}, grpc.as(partner))).data;
    assert.deepEqual(
      [overGrpc?.type, overGrpc?.amountKobo, overGrpc?.availableChangeKobo, overGrpc?.bankReference],
      [WalletTransferType.DEBIT, 300n, -300n, `${partner.id} out`],
    );
    const overConnect = await connectCall(gateway, partner, 'Wallet/ListTransfers', {});
    assert.equal(overConnect.body.data[0].type, 'WALLET_TRANSFER_TYPE_DEBIT');
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
    assert.deepEqual((await audited(partner)).slice(1), [
      [
        'Wallets.DebitWallet',
        'tester',
        { entry: first.correction?.id, amountKobo: '300', bankReference: `${partner.id} out`, reason: 'a test' },
      ],
    ]);
  });

  it('is a reversal of a credit, whole or in parts, and the credit stays as it was', async () => {
    const partner = await gateway.newPartner();
    const bank = `${partner.id} typed with a zero too many`;
    await credit(partner, 10_000n, bank);
    const { correction: part } = await reverse(partner, 9_000n, bank, `${partner.id} the zero`);
    assert.deepEqual(
      [part?.kind, part?.creditBankReference, part?.availableAfterKobo],
      [WalletCorrectionKind.CREDIT_REVERSAL, bank, 1_000n],
    );
    await assert.rejects(reverse(partner, 1_001n, bank, `${partner.id} too much`), {
      code: status.FAILED_PRECONDITION,
      details: 'of the credit 1,000 kobo are left, and 9,000 kobo are reversed already',
    });
    assert.equal((await reverse(partner, 1_000n, bank, `${partner.id} the rest`)).recorded, true);
    const again = await reverse(partner, 9_000n, bank, `${partner.id} the zero`);
    assert.deepEqual([again.recorded, again.correction], [false, part]);
    const { data } = await get(partner, '/v1/wallet/transfers');
    assert.deepEqual(
      data.map((entry: Record<string, unknown>) => [
        entry.type,
        entry.amount_kobo,
        entry.available_change_kobo,
        entry.bank_reference,
      ]),
      [
        ['credit_reversal', 1_000, -1_000, `${partner.id} the rest`],
        ['credit_reversal', 9_000, -9_000, `${partner.id} the zero`],
        ['credit', 10_000, 10_000, bank],
      ],
    );
    const [overGrpc] = (await grpc.wallet.listTransfers({}, grpc.as(partner))).data;
    assert.deepEqual([overGrpc?.type, overGrpc?.availableChangeKobo], [WalletTransferType.CREDIT_REVERSAL, -1_000n]);
    const overConnect = await connectCall(gateway, partner, 'Wallet/ListTransfers', {});
    assert.equal(overConnect.body.data[1].type, 'WALLET_TRANSFER_TYPE_CREDIT_REVERSAL');
    assert.equal(await available(partner), 0n);
    const repeated = await credit(partner, 10_000n, bank);
    assert.deepEqual([repeated.recorded, repeated.credit?.reversedKobo], [false, 10_000n]);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
    assert.deepEqual((await audited(partner))[1], [
      'Wallets.ReverseCredit',
      'tester',
      {
        entry: part?.id,
        amountKobo: '9000',
        bankReference: `${partner.id} the zero`,
        reverses: '1',
        reason: 'a test',
      },
    ]);
  });

  it('takes nothing, and says why, if it is recorded for something else or there is not so much', async () => {
    const partner = await gateway.newPartner();
    const other = await gateway.newPartner();
    const of = (name: string) => `${partner.id.slice(4)} ${name}`;
    await credit(partner, 500n, of('credit'));
    await credit(partner, 100n, of('second'));
    await credit(other, 900n, of('others'));
    await debit(partner, 50n, of('debit'));
    await reverse(partner, 50n, of('credit'), of('reversal'));
    await gateway.allocate(partner, { amount_kobo: 200 });
    // 600 came in; 50 were debited, 50 reversed and 200 allocated.
    assert.equal(await available(partner), 300n);
    const nobody = { ...partner, id: 'par_22222222222222222222' };
    const exists = (details: string) => ({
      code: status.ALREADY_EXISTS,
      details: `the bank reference is recorded ${details}`,
    });
    const lacks = (details: string) => ({ code: status.FAILED_PRECONDITION, details });
    const missing = { code: status.NOT_FOUND, details: 'the partner has no credit with this bank reference' };
    const cases: [string, () => Promise<unknown>, { code: status; details: string }][] = [
      [
        'a debit of nobody',
        () => debit(nobody, 1n, of('new')),
        { code: status.NOT_FOUND, details: 'there is no such partner' },
      ],
      ['one kobo too many', () => debit(partner, 301n, of('new')), lacks('the wallet has 300 kobo available')],
      ['a debit again', () => debit(partner, 51n, of('debit')), exists('with another amount, 50 kobo')],
      ["a debit of another's", () => debit(other, 50n, of('debit')), exists('for another partner')],
      ['a debit for a credit', () => debit(partner, 500n, of('credit')), exists('for something else, a credit')],
      [
        'a debit for a reversal',
        () => debit(partner, 50n, of('reversal')),
        exists('for something else, a credit reversal'),
      ],
      ['a credit for a debit', () => credit(partner, 50n, of('debit')), exists('for something else, a debit')],
      [
        'a credit for a reversal',
        () => credit(partner, 50n, of('reversal')),
        exists('for something else, a credit reversal'),
      ],
      ['an unknown credit', () => reverse(partner, 1n, of('none'), of('new')), missing],
      ["another's credit", () => reverse(partner, 1n, of('others'), of('new')), missing],
      ['a debit as a credit', () => reverse(partner, 1n, of('debit'), of('new')), missing],
      ['a reversal as a credit', () => reverse(partner, 1n, of('reversal'), of('new')), missing],
      [
        'a reversal by itself',
        () => reverse(partner, 1n, of('second'), of('second')),
        exists('for something else, a credit'),
      ],
      [
        'a reversal again',
        () => reverse(partner, 49n, of('credit'), of('reversal')),
        exists('with another amount, 50 kobo'),
      ],
      [
        'a reversal of another credit',
        () => reverse(partner, 50n, of('second'), of('reversal')),
        exists(`for another credit, that of ${of('credit')}`),
      ],
      [
        'more than is left',
        () => reverse(partner, 451n, of('credit'), of('new')),
        lacks('of the credit 450 kobo are left, and 50 kobo are reversed already'),
      ],
      [
        'more than is available',
        () => reverse(partner, 301n, of('credit'), of('new')),
        lacks('the wallet has 300 kobo available'),
      ],
    ];
    for (const [name, call, expected] of cases) await assert.rejects(call(), expected, name);
    const before = await audited(partner);
    assert.equal(before.length, 4, 'a refused call is not in the audit');
    assert.equal(await available(partner), 300n);
    assert.equal((await reverse(partner, 300n, of('credit'), of('new'))).recorded, true);
    assert.equal(await available(partner), 0n);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });

  it('is as much of a reversal as is available, which says what is missing, and never takes more when it is repeated', async () => {
    const partner = await gateway.newPartner();
    const of = (name: string) => `${partner.id.slice(4)} ${name}`;
    await credit(partner, 1_000n, of('wrong'));
    await gateway.allocate(partner, { amount_kobo: 700 });
    const first = await reverseUpTo(partner, 900n, of('wrong'), of('zero'));
    assert.deepEqual([first.recorded, first.correction?.amountKobo, first.notReversedKobo], [true, 300n, 600n]);
    assert.equal(await available(partner), 0n);
    await assert.rejects(reverseUpTo(partner, 600n, of('wrong'), of('zero 2')), {
      code: status.FAILED_PRECONDITION,
      details: 'the wallet has 0 kobo available',
    });

    await credit(partner, 500n, of('right'));
    const again = await reverseUpTo(partner, 900n, of('wrong'), of('zero'));
    assert.deepEqual([again.recorded, again.correction, again.notReversedKobo], [false, first.correction, 600n]);
    assert.equal(await available(partner), 500n, 'a repeated call took more');
    const other = {
      code: status.ALREADY_EXISTS,
      details: 'the bank reference is recorded with another amount, 300 kobo',
    };
    await assert.rejects(reverse(partner, 900n, of('wrong'), of('zero')), other);
    await assert.rejects(reverseUpTo(partner, 299n, of('wrong'), of('zero')), other);

    const second = await reverseUpTo(partner, 600n, of('wrong'), of('zero 2'));
    assert.deepEqual([second.correction?.amountKobo, second.notReversedKobo], [500n, 100n]);
    await credit(partner, 500n, of('more'));
    const last = await reverseUpTo(partner, 10_000n, of('wrong'), of('zero 3'));
    assert.deepEqual(
      [last.correction?.amountKobo, last.notReversedKobo],
      [200n, 9_800n],
      'no more than the credit was',
    );
    await assert.rejects(reverseUpTo(partner, 1n, of('wrong'), of('zero 4')), {
      code: status.FAILED_PRECONDITION,
      details: 'of the credit 0 kobo are left, and 1,000 kobo are reversed already',
    });
    const whole = await reverseUpTo(partner, 100n, of('more'), of('whole'));
    assert.deepEqual([whole.correction?.amountKobo, whole.notReversedKobo], [100n, 0n]);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
    const details = (await audited(partner)).map(([, , detail]) => detail);
    assert.deepEqual(
      details.filter(({ bankReference }) => bankReference === of('zero')),
      [
        {
          ...{ entry: first.correction?.id, amountKobo: '300', bankReference: of('zero'), reverses: '1' },
          ...{ up_to_kobo: '900', reason: 'a test' },
        },
      ],
    );
  });

  it('takes together no more than is available, when two take what is available at once and others allocate', async () => {
    for (let round = 0; round < 5; round += 1) {
      const partner = await gateway.newPartner();
      const of = (name: string) => `${partner.id.slice(4)} ${name}`;
      await credit(partner, 1_000n, of('wrong'));
      const allocating = [100, 200, 300].map((amount) => gateway.allocate(partner, { amount_kobo: amount }));
      const reversing = ['zero', 'zero', 'zero 2'].map((name) =>
        reverseUpTo(partner, 800n, of('wrong'), of(name)).catch((error: { code: status }) => {
          assert.equal(error.code, status.FAILED_PRECONDITION, String(error));
        }),
      );
      const allocated = await Promise.all(allocating);
      const answers = (await Promise.all(reversing)).flatMap((answer) => answer ?? []);
      const entries = new Map(answers.map(({ correction }) => [correction?.id, correction?.amountKobo ?? 0n]));
      const taken = [...entries.values()].reduce((sum, one) => sum + one, 0n);
      assert.ok(entries.size >= 1 && taken <= 1_000n, `${entries.size} entries took ${taken}`);
      assert.equal(answers.filter(({ recorded }) => recorded).length, entries.size, 'an entry was recorded twice');
      for (const { correction, notReversedKobo } of answers) {
        assert.equal((correction?.amountKobo ?? 0n) + notReversedKobo, 800n);
      }
      const used = allocated.reduce((sum, { status: code }, at) => sum + (code === 201 ? (at + 1) * 100 : 0), 0);
      assert.equal(await available(partner), 1_000n - taken - BigInt(used));
      assert.deepEqual(await verifyLedger(admin, partner.id), []);
    }
  });

  it('is refused by its field if it cannot be', async () => {
    const partner = await gateway.newPartner();
    await credit(partner, 10n, `${partner.id} in`);
    for (const [amount, reference] of [
      [0n, 'good'],
      [-1n, 'good'],
      [10n ** 15n + 1n, 'good'],
      [1n, ''],
      [1n, ' space'],
      [1n, 'x'.repeat(65)],
      [1n, 'référence'],
    ] as const) {
      const code = { code: status.INVALID_ARGUMENT };
      await assert.rejects(debit(partner, amount, reference), code, `${amount} ${reference}`);
      await assert.rejects(reverse(partner, amount, `${partner.id} in`, reference), code, `${amount} ${reference}`);
    }
    await assert.rejects(reverse(partner, 1n, '', 'good'), { code: status.INVALID_ARGUMENT });
    assert.equal(await available(partner), 10n);
  });

  it('is listed with the credits, page by page', async () => {
    const partner = await gateway.newPartner();
    const of = (name: string) => `${partner.id.slice(4)} ${name}`;
    for (const name of ['a', 'b', 'c']) await credit(partner, 100n, of(name));
    await debit(partner, 10n, of('debit 1'));
    await reverse(partner, 60n, of('a'), of('reversal 1'));
    await debit(partner, 20n, of('debit 2'));
    await reverse(partner, 40n, of('a'), of('reversal 2'));
    await reverse(partner, 5n, of('c'), of('reversal 3'));
    const { credits } = await admin.wallets.listCredits({ partnerId: partner.id }, admin.options);
    assert.deepEqual(
      credits.map(({ bankReference, amountKobo, reversedKobo }) => [bankReference, amountKobo, reversedKobo]),
      [
        [of('c'), 100n, 5n],
        [of('b'), 100n, 0n],
        [of('a'), 100n, 100n],
      ],
    );
    const list = (limit: number, beforeSequence = 0n) =>
      admin.wallets.listCorrections({ partnerId: partner.id, limit, beforeSequence }, admin.options);
    const first = await list(3);
    const rest = await list(3, first.corrections.at(-1)?.sequence);
    assert.deepEqual([first.hasMore, rest.hasMore], [true, false]);
    assert.deepEqual(
      [...first.corrections, ...rest.corrections].map(({ sequence, kind, amountKobo, creditBankReference }) => [
        sequence,
        WalletCorrectionKind[kind],
        amountKobo,
        creditBankReference,
      ]),
      [
        [8n, 'CREDIT_REVERSAL', 5n, of('c')],
        [7n, 'CREDIT_REVERSAL', 40n, of('a')],
        [6n, 'DEBIT', 20n, ''],
        [5n, 'CREDIT_REVERSAL', 60n, of('a')],
        [4n, 'DEBIT', 10n, ''],
      ],
    );
    await assert.rejects(admin.wallets.listCorrections({ partnerId: 'par_22222222222222222222' }, admin.options), {
      code: status.NOT_FOUND,
    });
    await assert.rejects(list(1_001), { code: status.INVALID_ARGUMENT });
  });

  it('is recorded once when many record it at once, for the same partner and for another', async () => {
    const partners = [await gateway.newPartner(), await gateway.newPartner()] as const;
    for (const partner of partners) await credit(partner, 1_000n, `${partner.id} in`);
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.allSettled(
        Array.from({ length: 20 }, (_, count) => {
          const partner = partners[count % 2] ?? partners[0];
          const reference = `raced ${partners[0].id.slice(4)} ${round}`;
          return count % 4 < 2 ? debit(partner, 10n, reference) : reverse(partner, 10n, `${partner.id} in`, reference);
        }),
      );
      const recorded = answers.filter((answer) => answer.status === 'fulfilled' && answer.value.recorded);
      assert.equal(recorded.length, 1);
      const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason.code] : []));
      assert.deepEqual(new Set(refused), new Set([status.ALREADY_EXISTS]));
    }
    const left = (await available(partners[0])) + (await available(partners[1]));
    assert.equal(left, 2_000n - 50n);
    for (const partner of partners) assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });

  it('takes no more of a credit than it was, when many reverse it at once', async () => {
    const partner = await gateway.newPartner();
    for (const name of ['once', 'more']) await credit(partner, 1_000n, `${partner.id} ${name}`);
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, count) =>
        reverse(partner, 200n, `${partner.id} once`, `${partner.id} reversal ${count}`),
      ),
    );
    assert.equal(answers.filter((answer) => answer.status === 'fulfilled' && answer.value.recorded).length, 5);
    const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason.code] : []));
    assert.deepEqual(new Set(refused), new Set([status.FAILED_PRECONDITION]));
    assert.equal(await available(partner), 1_000n);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });

  it('never makes less than nothing of what is available, and reverses no credit twice, whatever runs at once', async () => {
    const amount = fc.integer({ min: 1, max: 700 });
    const request = fc.oneof(
      fc.record({ do: fc.constant('allocate' as const), amount }),
      fc.record({ do: fc.constant('debit' as const), amount, reference: fc.nat(3) }),
      fc.record({
        ...{ do: fc.constant('reverse' as const), amount, reference: fc.nat(3), credit: fc.nat(1) },
        upTo: fc.boolean(),
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 10, maxLength: 25 }), async (requests) => {
        const partner = await gateway.newPartner();
        const credits = [`${partner.id} 0`, `${partner.id} 1`];
        for (const reference of credits) await credit(partner, 1_000n, reference);
        let taken = 0n;
        const take = async (call: Promise<{ recorded: boolean; correction?: { amountKobo: bigint } }>) => {
          const answer = await call.catch((error: { code: status }) => {
            assert.ok([status.ALREADY_EXISTS, status.FAILED_PRECONDITION].includes(error.code), String(error));
          });
          if (answer?.recorded === true) taken += answer.correction?.amountKobo ?? 0n;
        };
        await Promise.all(
          requests.map(async (one) => {
            const kobo = BigInt(one.amount);
            if (one.do === 'debit') return take(debit(partner, kobo, `${partner.id} d${one.reference}`));
            if (one.do === 'reverse') {
              const bank = credits[one.credit] ?? '';
              return take((one.upTo ? reverseUpTo : reverse)(partner, kobo, bank, `${partner.id} r${one.reference}`));
            }
            const answer = await gateway.allocate(partner, { amount_kobo: one.amount }, randomUUID());
            assert.ok([201, 422].includes(answer.status), answer.text);
            // Another one with the same account and amount may be under way.
            if (answer.status === 201) taken += kobo;
          }),
        );
        assert.equal(await available(partner), 2_000n - taken);
        const listed = await admin.wallets.listCredits({ partnerId: partner.id }, admin.options);
        for (const { amountKobo, reversedKobo } of listed.credits) assert.ok(reversedKobo <= amountKobo);
        assert.deepEqual(await verifyLedger(admin, partner.id), []);
      }),
      { numRuns: 8 },
    );
  });
});

describe('a ledger with corrections that somebody touched', () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    // Ledgers are falsified here.
    await gateway.stop(['ledgers']);
  });

  /** A partner with two credits, a reversal of a part of the first, and a debit. */
  async function corrected(): Promise<string> {
    const { id: partnerId } = await gateway.newPartner();
    const more = { partnerId, reason: 'a test' };
    for (const name of ['a', 'b']) {
      await admin.wallets.creditWallet(
        { ...more, amountKobo: 100n, bankReference: `${partnerId} ${name}` },
        admin.options,
      );
    }
    const reversal = { creditBankReference: `${partnerId} a`, bankReference: `${partnerId} c`, amountKobo: 60n };
    await admin.wallets.reverseCredit({ ...more, ...reversal }, admin.options);
    await admin.wallets.debitWallet({ ...more, amountKobo: 5n, bankReference: `${partnerId} d` }, admin.options);
    assert.deepEqual(await verifyLedger(admin, partnerId), []);
    return partnerId;
  }

  const write = (sql: string, partnerId: string) => gateway.database.write(statement(sql, partnerId));

  it('has a correction named that no entry of the audit records', async () => {
    for (const [action, sequence] of [
      ['Wallets.ReverseCredit', 3],
      ['Wallets.DebitWallet', 4],
    ] as const) {
      const partnerId = await corrected();
      await write(`DELETE FROM audit_entries WHERE partner_id = ? AND action = '${action}'`, partnerId);
      assert.deepEqual(await verifyLedger(admin, partnerId), [
        `UNAUDITED ${sequence}: no entry of the audit records this correction`,
      ]);
    }
  });

  it('has a reversal named that reverses another credit than the audit says, or none', async () => {
    const partnerId = await corrected();
    const unaudited = 'UNAUDITED 3: no entry of the audit records this correction';
    await write('UPDATE wallet_transfers SET reverses = 2 WHERE partner_id = ? AND sequence = 3', partnerId);
    assert.deepEqual(await verifyLedger(admin, partnerId), [unaudited]);
    for (const other of [0, 3, 4, 9]) {
      await write(`UPDATE wallet_transfers SET reverses = ${other} WHERE partner_id = ? AND sequence = 3`, partnerId);
      assert.deepEqual(await verifyLedger(admin, partnerId), [
        unaudited,
        'REVERSAL 3: it reverses no credit before it',
      ]);
    }
    await write('UPDATE wallet_transfers SET reverses = NULL WHERE partner_id = ? AND sequence = 3', partnerId);
    assert.deepEqual(await verifyLedger(admin, partnerId), [
      'CHANGED 3: an entry of the type credit_reversal needs its reversed credit',
    ]);
  });

  it('has a credit named of which more is reversed than there was', async () => {
    const partnerId = await corrected();
    const reversal = { creditBankReference: `${partnerId} b`, bankReference: `${partnerId} e`, amountKobo: 50n };
    await admin.wallets.reverseCredit({ partnerId, reason: 'a test', ...reversal }, admin.options);
    await write('UPDATE wallet_transfers SET reverses = 1 WHERE partner_id = ? AND sequence = 5', partnerId);
    const found = await verifyLedger(admin, partnerId);
    assert.ok(found.includes('REVERSAL 3: 110 kobo of a credit of 100 are reversed'), found.join());
    assert.ok(found.includes('REVERSAL 5: 110 kobo of a credit of 100 are reversed'), found.join());
  });

  it('takes no money out of a wallet whose end no gateway sealed', async () => {
    const partnerId = await corrected();
    await write('UPDATE wallets SET available_kobo = available_kobo + 1000 WHERE partner_id = ?', partnerId);
    const debit = { partnerId, amountKobo: 500n, bankReference: `${partnerId} f`, reason: 'a test' };
    await assert.rejects(admin.wallets.debitWallet(debit, admin.options), { code: status.UNAVAILABLE });
  });
});
