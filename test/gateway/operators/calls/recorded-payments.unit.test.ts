import assert from 'node:assert/strict';
import { it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { recordedBefore } from '../../../../src/gateway/operators/calls/wallet-corrections.ts';
import type { LedgerEntry } from '../../../../src/gateway/trading/wallet/rules.ts';
import type { RecordedPayment } from '../../../../src/gateway/trading/wallet/store.ts';

/** An entry of a bank reference that is recorded already. */
function recorded(type: LedgerEntry['type'], creditBankReference: string | null = null): RecordedPayment {
  const entry = { partnerId: 'par_a', type, amountKobo: 1_000n } as LedgerEntry;
  return { entry, reversedKobo: 0n, creditBankReference };
}

it('a payment is answered as recorded before only to a call that asks for the very same', () => {
  const [credit, debit] = [recorded('credit'), recorded('debit')];
  const reversal = recorded('credit_reversal', 'credit 1');
  const same = { partnerId: 'par_a', amountKobo: 1_000n };
  const reverse = { ...same, creditBankReference: 'credit 1' };
  for (const [payment, asked, refusal] of [
    [credit, same, undefined],
    [debit, { ...same, creditBankReference: null }, undefined],
    [reversal, reverse, undefined],
    [credit, { ...same, partnerId: 'par_b' }, /for another partner/],
    [credit, { ...same, amountKobo: 999n }, /with another amount, 1,000 kobo/],
    [credit, { ...same, creditBankReference: null }, /for something else, a credit/],
    [debit, same, /for something else, a debit/],
    [debit, reverse, /for something else, a debit/],
    [reversal, same, /for something else, a credit reversal/],
    [reversal, { ...reverse, creditBankReference: 'credit 2' }, /for another credit, that of credit 1/],
    [reversal, { ...reverse, amountKobo: 1_001n }, /with another amount/],
    // It took what was left then, and takes nothing more.
    [reversal, { ...reverse, amountKobo: 1_001n, upToAvailable: true }, undefined],
    [reversal, { ...reverse, upToAvailable: true }, undefined],
    [reversal, { ...reverse, amountKobo: 999n, upToAvailable: true }, /with another amount/],
  ] as const) {
    const answer = () => recordedBefore(payment, asked);
    if (refusal === undefined) assert.deepEqual(answer(), { payment, recorded: false });
    else assert.throws(answer, { status: status.ALREADY_EXISTS, message: refusal }, String(refusal));
  }
});
