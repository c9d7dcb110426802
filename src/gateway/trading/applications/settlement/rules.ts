import type { ApplicationReport } from '../../../../gen/marina/broker/v1/applications_pb.ts';
import { type Applied, inconsistent, type Settled, type Settling } from '../../submission/rules.ts';
import {
  type ApplicationFacts,
  type ApplicationStateName,
  applicationStates,
  applyReport as applyOrdinaryReport,
  rejectSentences,
} from '../rules.ts';

/** The states that an application can be settled to. */
export type SettledApplicationState = 'opened' | 'documents_required' | 'submitted' | 'rejected' | 'unplaced';

/** The outcome of an application by the evidence. */
export interface ApplicationSettlement {
  readonly state: SettledApplicationState;
  /** The broker's reference; undefined: unknown. */
  readonly reference: string | undefined;
  /** Only of an opened one. */
  readonly account: string | undefined;
  /** Only of a rejected one. */
  readonly rejectReason: keyof typeof rejectSentences | undefined;
}

export interface SettledApplicationFacts extends ApplicationFacts {
  readonly settlement: string | null;
}

/** Where each state can be settled to. One that the broker has accepted was not unplaced, and a final state stays. */
const settledStates: Readonly<Record<ApplicationStateName, readonly SettledApplicationState[]>> = {
  sending: [],
  uncertain: ['opened', 'documents_required', 'submitted', 'rejected', 'unplaced'],
  documents_required: ['submitted', 'opened', 'rejected'],
  submitted: ['opened', 'rejected'],
  opened: [],
  rejected: [],
  refused: [],
  unplaced: [],
};

/** In the column `settlement`: a later report of the broker does not change it. */
const settled = 'settled';

const details: Readonly<Record<SettledApplicationState, string>> = {
  opened: 'the broker opened the account',
  documents_required: 'the broker accepted it',
  submitted: 'the broker has it with its four documents',
  rejected: 'the broker rejected it',
  unplaced: 'the broker never had it',
};

const reasons: Readonly<Record<SettledApplicationState, string | null>> = {
  opened: null,
  documents_required: 'The broker wants the four documents.',
  submitted: null,
  rejected: null,
  unplaced: 'The broker never had it.',
};

/** The change that an operator's settlement makes. `now` is business time. */
export function settleApplication<Row extends SettledApplicationFacts>(
  application: Row,
  settlement: ApplicationSettlement,
  now: number,
): Settling<Row> {
  const problem = problemOf(application, settlement);
  if (problem !== undefined) return { problem };
  const { state, reference, account, rejectReason } = settlement;
  const fields: Partial<SettledApplicationFacts> = {
    ...{ state, updatedAt: Math.max(now, application.updatedAt) },
    reference: application.reference ?? reference ?? null,
    ...(account === undefined ? {} : { account }),
    rejectReason: rejectReason ?? null,
    reason: rejectReason === undefined ? reasons[state] : rejectSentences[rejectReason],
    settlement: applicationStates.isFinal(state) ? settled : null,
  };
  const change: Settled<Row> = { fields: fields as Partial<Row>, detail: details[state] };
  return { changes: [change] };
}

function problemOf(
  { state: before, reference: known }: SettledApplicationFacts,
  { state, reference, account, rejectReason }: ApplicationSettlement,
): string | undefined {
  if (!settledStates[before].includes(state)) return `an application that is ${before} cannot be settled as ${state}`;
  if ((state === 'opened') !== (account !== undefined)) return '`account` is needed for `opened`, and only then';
  if ((state === 'rejected') !== (rejectReason !== undefined))
    return '`reject_reason` is needed for `rejected`, and only then';
  const isTaken = state === 'documents_required' || state === 'submitted';
  if (isTaken && reference === undefined && known === null) return '`reference` is needed: the broker has given it one';
  if (state === 'unplaced' && reference !== undefined)
    return 'an application that the broker never had has no reference';
  if (known !== null && reference !== undefined && known !== reference) {
    return `the broker has reported another reference of it, ${known}`;
  }
  return undefined;
}

/**
 * Applies one report of the broker to an application that may have been settled by an operator. A report that would change what
 * the settlement ended is inconsistent with it.
 */
export function applyReport<Row extends SettledApplicationFacts>(
  application: Row,
  report: ApplicationReport,
  now: number,
): Applied<Row> | undefined {
  const applied = applyOrdinaryReport(application, report, now);
  // The reason of one that was settled as refused or unplaced, and that the broker has after all, is corrected as any other's.
  const isAsOthers =
    application.settlement === null || application.state === 'refused' || application.state === 'unplaced';
  if (applied === undefined || isAsOthers) return applied;
  const seen = { ...application, lastReport: applied.row.lastReport, reference: applied.row.reference };
  if (applied.inconsistent) return { row: seen, changed: false, inconsistent: true, detail: applied.detail };
  if (applied.changed) return inconsistent(seen, 'broker', `${applied.detail}; the operator had settled it`);
  return { ...applied, row: seen };
}
