import {
  ApplicationFieldsSchema,
  type ApplicationReport,
  ApplicationReportKind,
  type ApplicationRejectReason as BrokersReason,
  ApplicationRejectReasonSchema as BrokersReasonSchema,
} from '../../../gen/marina/broker/v1/applications_pb.ts';
import type { ApplicationRejectReason, ApplicationState } from '../../../gen/marina/gateway/v1/applications_pb.ts';
import type { EnumName } from '../../../kit/enums.ts';
import { type Applied, changed, inconsistent, rejectReasons, statesOf, unchanged } from '../submission/rules.ts';

export type ApplicationStateName = EnumName<typeof ApplicationState>;

/** The fields of an application that decide its outcome. */
export interface ApplicationFacts {
  readonly state: ApplicationStateName;
  readonly reference: string | null;
  readonly account: string | null;
  readonly reason: string | null;
  readonly rejectReason: string | null;
  readonly param: string | null;
  /** The number of the last report applied. */
  readonly lastReport: bigint;
  readonly updatedAt: number;
}

/** The next states of each state. The gateway itself sets `submitted`, and the broker may decide before that. */
export const applicationStates = statesOf<ApplicationStateName>('an application', {
  sending: ['documents_required', 'opened', 'rejected', 'refused', 'uncertain'],
  uncertain: ['documents_required', 'opened', 'rejected', 'refused', 'unplaced'],
  documents_required: ['submitted', 'opened', 'rejected'],
  submitted: ['opened', 'rejected'],
  opened: [],
  rejected: [],
  refused: [],
  unplaced: [],
});

const { move, transitions } = applicationStates;

/** Whether documents may be sent. */
export function takesDocuments(state: ApplicationStateName): boolean {
  return state === 'documents_required' || state === 'submitted';
}

/** Applies one report of the broker. Undefined when the application has seen it already. */
export function applyReport<Row extends ApplicationFacts>(
  application: Row,
  report: ApplicationReport,
  now: number,
): Applied<Row> | undefined {
  if (report.number <= application.lastReport) return undefined;
  const seen = { ...application, lastReport: report.number };
  if (!isReport(report)) return contradiction(seen, 'a report that lacks what its kind needs');
  const known = { ...seen, reference: seen.reference ?? (report.reference === '' ? null : report.reference) };
  const [to, what, correction] = meanings[report.kind];
  if (known.state === 'refused' || known.state === 'unplaced') {
    // The partner learned that it never arrived, and may have applied again. The state is final; the reason is corrected.
    const reason = `It was reported as never having reached the broker. That was wrong. ${correction}`;
    const corrected = { ...known, reason, updatedAt: Math.max(now, known.updatedAt) };
    return { ...contradiction(known, what), row: corrected, changed: true };
  }
  if (isThere(known, report)) return unchanged(known, what);
  if (!transitions[known.state].includes(to)) return contradiction(known, what);
  if (to === 'documents_required') return changed(move(known, to, 'The broker wants the four documents.', now), what);
  if (to === 'opened') return changed({ ...move(known, to, null, now), account: report.account }, what);
  const { word, sentence } = rejectReasonOf(report.rejectReason);
  const rejected = { ...move(known, to, sentence, now), rejectReason: word, param: paramOf(report) };
  return changed(rejected, `${what}: ${word}`);
}

/** Whether a report has what its kind needs. */
export function isReport(report: ApplicationReport): report is ApplicationReport & { kind: KnownKind } {
  if (report.number <= 0n || report.at === undefined || report.reference.length > 64) return false;
  if (report.kind === ApplicationReportKind.ACCEPTED) return report.reference !== '';
  if (report.kind === ApplicationReportKind.OPENED) return /^[A-Z0-9]{1,64}$/.test(report.account);
  return report.kind === ApplicationReportKind.REJECTED;
}

type KnownKind = Exclude<ApplicationReportKind, ApplicationReportKind.UNSPECIFIED>;

/** Where each kind of report leads, what it says, and the sentence for a partner who had learned that it never arrived. */
const meanings = {
  [ApplicationReportKind.ACCEPTED]: ['documents_required', 'the broker accepted it', 'The broker has it.'],
  [ApplicationReportKind.OPENED]: ['opened', 'the broker opened the account', 'The broker opened an account.'],
  [ApplicationReportKind.REJECTED]: ['rejected', 'the broker rejected it', 'The broker rejected it.'],
} as const;

/** Whether an application is where a report says, or further. */
function isThere({ state, account }: ApplicationFacts, report: ApplicationReport): boolean {
  if (report.kind === ApplicationReportKind.ACCEPTED) return takesDocuments(state) || state === 'opened';
  if (report.kind === ApplicationReportKind.OPENED) return state === 'opened' && account === report.account;
  return state === 'rejected';
}

function contradiction<Row extends ApplicationFacts>(application: Row, what: string): Applied<Row> {
  return inconsistent(application, 'broker', what);
}

const fieldNames: ReadonlySet<string> = new Set(ApplicationFieldsSchema.fields.map(({ name }) => name));

/** The field that a rejection names. Any other text could be personal data and is left out. */
function paramOf({ param }: ApplicationReport): string | null {
  return fieldNames.has(param) ? param : null;
}

/** The sentence of each reject reason, ours and the broker's, which have the same names. */
export const rejectSentences: Readonly<Record<EnumName<typeof ApplicationRejectReason>, string>> = {
  invalid_field: 'A field is not what the broker accepts.',
  already_at_broker: 'The customer already has an account at the broker.',
  declined_by_broker: "The broker's staff declined it.",
  rejected_by_broker: 'The broker rejected the application.',
};

/** Our name and sentence for a rejection. */
export const rejectReasonOf = rejectReasons<typeof BrokersReason, keyof typeof rejectSentences>(
  BrokersReasonSchema,
  rejectSentences,
  'rejected_by_broker',
);
