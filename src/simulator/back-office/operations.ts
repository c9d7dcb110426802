import { createHash } from 'node:crypto';
import { AccountActivity } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { AllocationOutcome, AllocationRejectReason } from '../../gen/marina/broker/v1/allocations_pb.ts';
import {
  type ApplicationFields,
  ApplicationRejectReason,
  ApplicationReportKind,
  DocumentOutcome,
  DocumentType,
  type SendDocumentRequest,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import { AccountStatus } from '../../gen/marina/broker/v1/orders_pb.ts';
import { ApplicationOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { forbids } from '../clearing/account-states.ts';
import type { FillDelay } from '../exchange/planning.ts';
import type { SubmissionResult } from '../model.ts';
import { seededRandom } from '../random.ts';
import type { UnitOfWork } from '../store/unit-of-work.ts';
import { instantMs } from '../validation.ts';
import type { Directives } from '../wire/directives.ts';
import { maxAccounts, type World } from '../world.ts';
import { lgasOf } from './areas.ts';
import { malformedNumber } from './formats.ts';
import { type ApplicationBehaviour, amountMagic, firstNameMagic, lastNameMagic } from './magic.ts';
import type { Allocation, AllocationSubmission, Application, ApplicationEvent, DocumentFile } from './model.ts';

export interface BackOfficeSettings {
  readonly decisionDelay: FillDelay;
  readonly directives: Directives;
}

/** The result of a control that decides an application. */
export type ApplicationDecision =
  | { readonly outcome: 'decided'; readonly report: ApplicationEvent }
  | { readonly outcome: 'unknown' | 'final' };

/** The result of sending a document. */
export type DocumentTaken =
  | { readonly outcome: DocumentOutcome }
  | { readonly outcome: 'unknown_application' | 'closed' | 'too_late' };

/** How many different files of one type are remembered for an application. */
const maxFilesOfType = 100;
const documentTypes = [
  DocumentType.PHOTO,
  DocumentType.GOVERNMENT_ID,
  DocumentType.UTILITY_BILL,
  DocumentType.SIGNATURE,
] as const;

/** Accepts or rejects an application: once, and not after its `not_after`. */
export function submitApplication(
  unit: UnitOfWork,
  clientApplicationId: string,
  fields: ApplicationFields,
  notAfterMs: number | undefined,
  settings: BackOfficeSettings,
): SubmissionResult<ApplicationEvent> {
  if (unit.backOffice.application(clientApplicationId) !== undefined) return { outcome: 'seen_before' };
  if (unit.world.isTooLate(notAfterMs)) return { outcome: 'too_late' };
  const forced = settings.directives.takeApplication();
  const behaviour: ApplicationBehaviour | undefined = forced ?? lastNameMagic(fields.lastName);
  const rejection = rejectionOf(fields, forced, behaviour);
  const course = behaviour?.outcome ?? ApplicationOutcome.OPEN;
  const magicName = firstNameMagic(fields.firstName)?.firstName ?? '';
  const decideAfterMs = behaviour?.delayMs ?? usualDelayMs(unit.world, settings);
  const application = unit.backOffice.addApplication(
    { clientApplicationId, course, decideAfterMs, magicName },
    rejection === undefined,
  );
  if (rejection === undefined) {
    return { outcome: 'taken', result: unit.backOffice.report(application, ApplicationReportKind.ACCEPTED) };
  }
  application.rejectReason = rejection.rejectReason;
  application.param = rejection.param;
  return { outcome: 'taken', result: unit.backOffice.report(application, ApplicationReportKind.REJECTED) };
}

/** Takes a document whose receipt was counted, unless the broker has another file of its type or refuses it. */
export function takeDocument(
  unit: UnitOfWork,
  request: SendDocumentRequest,
  file: DocumentFile,
  { directives }: BackOfficeSettings,
): DocumentTaken {
  const { clientApplicationId: id, type } = request;
  const application = unit.backOffice.application(id);
  if (application === undefined || application.reference === '') return { outcome: 'unknown_application' };
  if (file.delivered) return { outcome: DocumentOutcome.DELIVERED };
  if (unit.world.isTooLate(instantMs(request.notAfter))) return { outcome: 'too_late' };
  if (application.state !== ApplicationReportKind.ACCEPTED) return { outcome: 'closed' };
  const forced = directives.takeDocument(id, type);
  const refuses = firstNameMagic(application.magicName)?.refuses === type;
  const outcome = forced ?? (refuses ? DocumentOutcome.REFUSED : DocumentOutcome.DELIVERED);
  const others = unit.backOffice.files(id).filter((each) => each.type === type && each.delivered);
  if (outcome !== DocumentOutcome.DELIVERED || others.length > 0) return { outcome: DocumentOutcome.REFUSED };
  unit.backOffice.deliver(file);
  planDecision(unit, application);
  return { outcome: DocumentOutcome.DELIVERED };
}

/** Whether another file of a type may still be remembered. */
export function hasRoomForFile(unit: UnitOfWork, id: string, type: DocumentType): boolean {
  return unit.backOffice.files(id).filter((each) => each.type === type).length < maxFilesOfType;
}

/** Decides an application whose time has come. Returns when its decision is due; null: no further step. */
export function decideIfDue(unit: UnitOfWork, id: string): number | null {
  const application = unit.backOffice.application(id);
  if (application?.decideAtMs == null) return null;
  if (application.decideAtMs > unit.world.clock.realNow()) return application.decideAtMs;
  decide(unit, id, application.course === ApplicationOutcome.DECLINE ? 'decline' : 'open');
  return application.decideAtMs;
}

/** Opens or declines an application. Without an account's code it gets a new account. */
export function decide(unit: UnitOfWork, id: string, decision: 'open' | 'decline', account = ''): ApplicationDecision {
  const application = unit.backOffice.application(id);
  if (application === undefined) return { outcome: 'unknown' };
  if (application.state !== ApplicationReportKind.ACCEPTED) return { outcome: 'final' };
  application.decideAtMs = null;
  const code = account === '' ? newAccount(unit.world, id) : account;
  const hasRoom = unit.world.accounts.size < maxAccounts || unit.world.accounts.has(code);
  if (decision === 'decline' || !hasRoom) {
    application.rejectReason = ApplicationRejectReason.DECLINED_BY_BROKER;
    return { outcome: 'decided', report: unit.backOffice.report(application, ApplicationReportKind.REJECTED) };
  }
  application.account = code;
  unit.setAccount(code, AccountStatus.ACTIVE);
  return { outcome: 'decided', report: unit.backOffice.report(application, ApplicationReportKind.OPENED) };
}

/** Books or rejects an allocation: once, and not after its `not_after`. */
export function submitAllocation(
  unit: UnitOfWork,
  submission: AllocationSubmission,
  notAfterMs: number | undefined,
  { directives }: BackOfficeSettings,
): SubmissionResult<Allocation> {
  if (unit.backOffice.allocation(submission.clientAllocationId) !== undefined) return { outcome: 'seen_before' };
  if (unit.world.isTooLate(notAfterMs)) return { outcome: 'too_late' };
  const behaviour = directives.takeAllocation(submission.account) ?? amountMagic(BigInt(submission.amountKobo));
  const reason = reasonToReject(unit.world, submission);
  if (behaviour?.outcome === AllocationOutcome.REJECTED) {
    const rejectReason = behaviour.rejectReason || AllocationRejectReason.REJECTED_BY_BROKER;
    return taken(unit.backOffice.addAllocation(submission, AllocationOutcome.REJECTED, rejectReason));
  }
  if (reason !== undefined) return taken(unit.backOffice.addAllocation(submission, AllocationOutcome.REJECTED, reason));
  return taken(unit.backOffice.addAllocation(submission, AllocationOutcome.BOOKED));
}

function taken<T>(result: T): SubmissionResult<T> {
  return { outcome: 'taken', result };
}

/** A directive overrides the broker's rules, and these override a magic name. */
function rejectionOf(
  fields: ApplicationFields,
  forced: ApplicationBehaviour | undefined,
  behaviour: ApplicationBehaviour | undefined,
): { rejectReason: ApplicationRejectReason; param: string } | undefined {
  const wrong = forced === undefined ? wrongField(fields) : undefined;
  if (wrong !== undefined) return { rejectReason: ApplicationRejectReason.INVALID_FIELD, param: wrong };
  if (behaviour?.outcome !== ApplicationOutcome.REJECT) return undefined;
  return {
    rejectReason: behaviour.rejectReason || ApplicationRejectReason.REJECTED_BY_BROKER,
    param: behaviour.param ?? '',
  };
}

/** The first field that the broker does not accept: one that is empty, a place that it does not know, a number that cannot be one. */
function wrongField(fields: ApplicationFields): string | undefined {
  const wrong = required.find(([, read]) => read(fields) === '');
  if (wrong !== undefined) return wrong[0];
  if (lgasOf(fields.state.toUpperCase()) === undefined) return 'state';
  const lgas = lgasOf(fields.stateOfOrigin.toUpperCase());
  if (lgas === undefined) return 'state_of_origin';
  const knowsLga = lgas.some(({ code }) => code === fields.lgaOfOrigin.toUpperCase());
  return knowsLga ? malformedNumber(fields) : 'lga_of_origin';
}

const required: readonly (readonly [string, (fields: ApplicationFields) => string])[] = [
  ['first_name', (fields) => fields.firstName],
  ['last_name', (fields) => fields.lastName],
  ['date_of_birth', (fields) => fields.dateOfBirth],
  ['gender', (fields) => fields.gender],
  ['email', (fields) => fields.email],
  ['phone', (fields) => fields.phone],
  ['address', (fields) => fields.address],
  ['city', (fields) => fields.city],
  ['state', (fields) => fields.state],
  ['state_of_origin', (fields) => fields.stateOfOrigin],
  ['lga_of_origin', (fields) => fields.lgaOfOrigin],
  ['bvn', (fields) => fields.bvn],
  ['next_of_kin_name', (fields) => fields.nextOfKinName],
  ['next_of_kin_phone', (fields) => fields.nextOfKinPhone],
  ['next_of_kin_relationship', (fields) => fields.nextOfKinRelationship],
];

function planDecision(unit: UnitOfWork, application: Application): void {
  const files = unit.backOffice.files(application.clientApplicationId);
  const complete = documentTypes.every((type) => files.some((file) => file.type === type && file.delivered));
  if (!complete || application.course === ApplicationOutcome.WAIT) return;
  application.decideAtMs = unit.world.clock.realNow() + application.decideAfterMs;
  unit.backOffice.changedApplications.add(application);
}

function usualDelayMs(world: World, { decisionDelay }: BackOfficeSettings): number {
  const random = seededRandom(world.seed, 'application', world.lastApplication + 1);
  return random.whole(decisionDelay.min, decisionDelay.max);
}

/** Made from the application's id, so that a simulator with an emptied database repeats no account's code. */
function newAccount(world: World, clientApplicationId: string): string {
  for (let attempt = 0; ; attempt += 1) {
    const digest = createHash('sha256').update(`${clientApplicationId} ${attempt}`).digest('hex');
    const code = `CS${digest.slice(0, 12).toUpperCase()}`;
    if (!world.accounts.has(code)) return code;
  }
}

function reasonToReject(
  world: World,
  { account, amountKobo }: AllocationSubmission,
): AllocationRejectReason | undefined {
  const accountStatus = world.accounts.get(account) ?? AccountStatus.NOT_AT_BROKER;
  if (accountStatus === AccountStatus.NOT_AT_BROKER) return AllocationRejectReason.ACCOUNT_NOT_AT_BROKER;
  if (forbids(world.stateOf(account), AccountActivity.FUND)) return AllocationRejectReason.ACCOUNT_RESTRICTED;
  const balance = (world.cash.get(account) ?? 0) + amountKobo;
  return Number.isSafeInteger(balance) ? undefined : AllocationRejectReason.AMOUNT_NOT_ACCEPTED;
}
