import assert from 'node:assert/strict';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { fc } from '../properties.ts';
import { dayMs, mayPassDays, passDays } from './environment.ts';
import { callGuarded } from './four-eyes.ts';
import type { ModelWithdrawal, PartnerModel } from './partner-model.ts';
import { boundMs, type Choice, type Command, operate } from './surroundings.ts';
import { magicEndOf, untilWithdrawalIs } from './withdrawals.ts';

/** The withdrawals that wait for their release. */
const held = ({ withdrawals }: Pick<PartnerModel, 'withdrawals'>) =>
  withdrawals.filter(({ state }) => state === 'sending');

/** Agrees on the amount above which withdrawals wait, or that none waits. A higher one needs a second operator. */
function setReleaseAmount(aboveKobo: number | undefined, isDeclined: boolean): Command {
  return {
    toString: () => `withdrawals ${aboveKobo === undefined ? 'do not wait' : `above ${aboveKobo} wait`}`,
    check: ({ releaseAboveKobo }) => releaseAboveKobo !== aboveKobo,
    run: async (model, whole) => {
      const amount: JsonObject = aboveKobo === undefined ? {} : { above_kobo: String(aboveKobo) };
      const before = model.releaseAboveKobo ?? Number.POSITIVE_INFINITY;
      const isSecondNeeded = (aboveKobo ?? Number.POSITIVE_INFINITY) > before;
      const request = { partner_id: whole.partner.id, ...amount };
      const second = { isSecondNeeded, isDeclined };
      const { isMade } = await callGuarded(whole, 'Releases.SetReleaseAmount', request, second);
      if (isMade) model.releaseAboveKobo = aboveKobo;
    },
  };
}

/** Two operators release a withdrawal that waits: it is sent once, unless a pause or a stop forbids it. */
function release([at = 0]: Choice): Command {
  return {
    toString: () => `release withdrawal ${at}`,
    check: (model) => held(model).length > 0,
    run: async (model, whole) => {
      const waiting = held(model);
      const withdrawal = waiting[at % waiting.length] as ModelWithdrawal;
      const asked = { withdrawal_id: withdrawal.id, evidence: 'the model' };
      const { proposal } = await whole.operators.as('ada', 'Releases.ProposeRelease', asked);
      const approval = { id: proposal.id, reason: 'the model' };
      if (model.forbids('withdraw', 1)) {
        const { code } = await whole.operators.refused('bola', 'Proposals.ApproveProposal', approval);
        assert.equal(code, status.FAILED_PRECONDITION, 'what is stopped is not released');
        await operate(whole, 'Proposals.DeclineProposal', { id: proposal.id }, 'bola');
        return untilWithdrawalIs(whole, withdrawal, ['sending']).then(() => undefined);
      }
      const before = whole.unclear();
      const { state } = magicEndOf(model, withdrawal.body);
      await whole.operators.as('bola', 'Proposals.ApproveProposal', approval);
      const states = whole.unclear() > before ? [state, 'refused'] : [state];
      withdrawal.state = await untilWithdrawalIs(whole, withdrawal, states);
    },
  };
}

/** An operator refuses a withdrawal that waits: it is never sent. */
function refuse([at = 0]: Choice): Command {
  return {
    toString: () => `refuse withdrawal ${at}`,
    check: (model) => held(model).length > 0,
    run: async (model, whole) => {
      const waiting = held(model);
      const withdrawal = waiting[at % waiting.length] as ModelWithdrawal;
      await operate(whole, 'Releases.RefuseWithdrawal', { withdrawal_id: withdrawal.id });
      withdrawal.state = await untilWithdrawalIs(whole, withdrawal, ['refused']);
    },
  };
}

/** How long a withdrawal waits for its release. */
const longestHoldMs = 7 * dayMs;
/** How long the gateway may take to refuse those that have waited for so long: it looks once a minute. */
const refusedWithinMs = 60_000 + boundMs;

/** Nobody releases the withdrawals that wait, and their time is over: they are never sent. */
function letRunOut(): Command {
  return {
    toString: () => 'let the time of the withdrawals that wait run out',
    check: (model) => held(model).length > 0 && mayPassDays(model),
    run: async (model, whole) => {
      const waiting = held(model);
      await passDays(model, whole, (now) => now + longestHoldMs);
      for (const withdrawal of waiting) {
        withdrawal.state = await untilWithdrawalIs(whole, withdrawal, ['refused'], refusedWithinMs);
      }
    },
  };
}

const pick = fc.array(fc.nat(1_000), { minLength: 1, maxLength: 1 });

/** The commands about withdrawals that wait for their release. */
export const releaseCommands = [
  ...[0, 1].map(() =>
    fc
      .tuple(fc.constantFrom(undefined, 0, 300_000, 700_000), fc.boolean())
      .map(([aboveKobo, isDeclined]) => setReleaseAmount(aboveKobo, isDeclined)),
  ),
  ...[pick, pick].map((each) => each.map(release)),
  // It takes up to a minute, and so it is tried less often.
  pick.map((each) => ((each[0] ?? 0) % 3 === 0 ? letRunOut() : refuse(each))),
];
