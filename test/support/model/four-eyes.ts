import assert from 'node:assert/strict';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { Found } from '../operator.ts';
import type { PartnerModel } from './partner-model.ts';
import { operate, type Whole } from './surroundings.ts';

/** The calls that add up to an amount that needs a second operator, each for itself. */
export type PaymentType = 'credit' | 'debit' | 'reversal';

/** Whether a payment needs a second operator, alone or with the small ones of the same day. */
export function needsSecond(model: PartnerModel, type: PaymentType, amountKobo: number, aboveKobo: number): boolean {
  const today = model.payments.filter((one) => one.type === type && one.day === model.day);
  const small = today.filter((one) => one.amountKobo <= aboveKobo);
  return small.reduce((sum, one) => sum + one.amountKobo, amountKobo) > aboveKobo;
}

/** The result of a call that may need a second operator. */
interface Guarded {
  /** Whether the change was made. */
  readonly isMade: boolean;
  /** The answer of the first operator's call. */
  readonly asked: Found;
}

/** Makes a call that may need a second operator, who approves or declines. The first one cannot approve. */
export async function callGuarded(
  whole: Whole,
  call: string,
  request: JsonObject,
  { isSecondNeeded, isDeclined }: { readonly isSecondNeeded: boolean; readonly isDeclined: boolean },
): Promise<Guarded> {
  const asked = await operate(whole, call, request);
  assert.equal(asked.proposal !== undefined, isSecondNeeded, `${call} needs a second operator or not`);
  if (!isSecondNeeded) return { isMade: true, asked };
  const { id } = asked.proposal;
  const own = await whole.operators.refused('ada', 'Proposals.ApproveProposal', { id, reason: 'the model' });
  assert.equal(own.code, status.PERMISSION_DENIED, 'the one who proposed it must not approve it');
  const decision = isDeclined ? 'Proposals.DeclineProposal' : 'Proposals.ApproveProposal';
  await operate(whole, decision, { id }, 'bola');
  return { isMade: !isDeclined, asked };
}
