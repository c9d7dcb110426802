import type { Check } from './check.ts';
import { accountChecks } from './checks/accounts.ts';
import { allocationChecks } from './checks/allocations.ts';
import { applicationRunChecks, applicationStreamChecks } from './checks/application-stream.ts';
import { applicationChecks } from './checks/applications.ts';
import { cancelChecks } from './checks/cancels.ts';
import { cutChecks } from './checks/cut.ts';
import { documentChecks } from './checks/documents.ts';
import { fillChecks } from './checks/fills.ts';
import { linkChecks } from './checks/link.ts';
import { lookUpChecks } from './checks/look-ups.ts';
import { moneyChecks } from './checks/money.ts';
import { orderChecks } from './checks/orders.ts';
import { referenceChecks } from './checks/reference.ts';
import { restartChecks } from './checks/restart.ts';
import { statementChecks, withdrawalStatementChecks } from './checks/statements.ts';
import { streamChecks } from './checks/streams.ts';
import { submissionChecks } from './checks/submissions.ts';
import { wholeRunChecks } from './checks/whole-run.ts';
import { withdrawalRunChecks, withdrawalStreamChecks } from './checks/withdrawal-stream.ts';
import { withdrawalChecks } from './checks/withdrawals.ts';

/** Every check, in the order in which they run: a cut and a restart come late, and what looks at the whole run last. */
export const checks: readonly Check[] = [
  ...linkChecks,
  ...orderChecks,
  ...lookUpChecks,
  ...fillChecks,
  ...cancelChecks,
  ...streamChecks,
  ...submissionChecks,
  ...accountChecks,
  ...moneyChecks,
  ...referenceChecks,
  ...statementChecks,
  ...allocationChecks,
  ...withdrawalChecks,
  ...withdrawalStatementChecks,
  ...applicationChecks,
  ...documentChecks,
  ...applicationStreamChecks,
  ...withdrawalStreamChecks,
  ...cutChecks,
  ...restartChecks,
  ...applicationRunChecks,
  ...withdrawalRunChecks,
  ...wholeRunChecks,
];
