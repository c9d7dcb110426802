import { toJsonString } from '@bufbuild/protobuf';
import { wrongText } from '../../gateway/trading/broker/rules.ts';
import {
  type ApplicationReport,
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import { shown } from '../exchange.ts';

const longestReference = 64;
const accountCode = /^[A-Z0-9]{1,64}$/;

export function isSameReport(one: ApplicationReport, other: ApplicationReport): boolean {
  return toJsonString(ApplicationReportSchema, one) === toJsonString(ApplicationReportSchema, other);
}

export function shownReport(report: ApplicationReport): unknown {
  return shown(ApplicationReportSchema, report);
}

/** Returns the error in a report by itself. The gateway takes such a report for none. */
export function reportProblem(report: ApplicationReport): string | undefined {
  const { number, clientApplicationId, kind, at, reference, account } = report;
  if (number < 1n) return `its number is ${number}`;
  if (clientApplicationId === '') return 'it names no application';
  if (kind === ApplicationReportKind.UNSPECIFIED) return 'it has no kind';
  if (at === undefined) return 'it has no time';
  if (reference.length > longestReference) return `its reference is longer than ${longestReference}`;
  if (kind === ApplicationReportKind.ACCEPTED && reference === '') return 'it is accepted, and has no reference';
  const isOpen = kind === ApplicationReportKind.OPENED;
  if (isOpen && !accountCode.test(account)) return `its account is "${account}"`;
  const field = wrongText(ApplicationReportSchema, report);
  return field === undefined ? undefined : `its ${field} is not printable`;
}

/** Returns the error in the order of one application's reports. */
export function lifeProblem([first, ...later]: readonly ApplicationReport[]): string | undefined {
  const { ACCEPTED, REJECTED, OPENED } = ApplicationReportKind;
  if (first === undefined) return undefined;
  if (first.kind === OPENED) return 'its first report opens the account';
  if (later.some(({ kind }) => kind === ACCEPTED)) return 'it was accepted twice';
  if (first.kind === REJECTED && later.length > 0) return 'it was rejected, and more came';
  return later.length > 1 ? `it ended ${later.length} times` : undefined;
}
