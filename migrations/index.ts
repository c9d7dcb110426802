import { Orders1763650000000 } from './1763650000000-orders.ts';
import { Wallet1763660300000 } from './1763660300000-wallet.ts';
import { Applications1763660400000 } from './1763660400000-applications.ts';
import { Documents1763661500000 } from './1763661500000-documents.ts';
import { Keys1763662800000 } from './1763662800000-keys.ts';
import { Webhooks1763670000000 } from './1763670000000-webhooks.ts';
import { Operators1763683000000 } from './1763683000000-operators.ts';
import { Diagnostics1763684000000 } from './1763684000000-diagnostics.ts';
import { Origins1763686000000 } from './1763686000000-origins.ts';
import { WebhookDue1763690000000 } from './1763690000000-webhook-due.ts';
import { Recovery1763691000000 } from './1763691000000-recovery.ts';
import { KeyMacs1763692100000 } from './1763692100000-key-macs.ts';
import { EndpointRevisions1763694100000 } from './1763694100000-endpoint-revisions.ts';
import { WriteChecks1763701000000 } from './1763701000000-write-checks.ts';
import { MissedReports1763703000000 } from './1763703000000-missed-reports.ts';
import { Guards1763710000000 } from './1763710000000-guards.ts';
import { EventObjects1763810000000 } from './1763810000000-event-objects.ts';
import { DeliveryIndexes1764010010000 } from './1764010010000-delivery-indexes.ts';
import { AccountLists1764010020000 } from './1764010020000-account-lists.ts';
import { ChangeLists1764010030000 } from './1764010030000-change-lists.ts';
import { ArchiveState1764040010000 } from './1764040010000-archive-state.ts';
import { OrderLists1764050010000 } from './1764050010000-order-lists.ts';
import { SecretKeys1764060010000 } from './1764060010000-secret-keys.ts';
import { Writer1764070010000 } from './1764070010000-writer.ts';
import { FoundObjects1764100010000 } from './1764100010000-found-objects.ts';
import { ObjectKeys1764110010000 } from './1764110010000-object-keys.ts';
import { FailingSince1764120010000 } from './1764120010000-failing-since.ts';
import { Reconciliation1764130010000 } from './1764130010000-reconciliation.ts';
import { UnclaimedReports1764230010000 } from './1764230010000-unclaimed-reports.ts';
import { Proposals1764240010000 } from './1764240010000-proposals.ts';
import { UnclaimedReportAge1764240020000 } from './1764240020000-unclaimed-report-age.ts';
import { Seals1764240030000 } from './1764240030000-seals.ts';
import { Withdrawals1764330010000 } from './1764330010000-withdrawals.ts';
import { Audit1764340010000 } from './1764340010000-audit.ts';
import { AuditSeals1764340020000 } from './1764340020000-audit-seals.ts';
import { Stops1764340030000 } from './1764340030000-stops.ts';
import { Releases1764340040000 } from './1764340040000-releases.ts';
import { FourEyes1764340050000 } from './1764340050000-four-eyes.ts';
import { Acknowledgements1764340060000 } from './1764340060000-acknowledgements.ts';
import { CreditReversals1764350010000 } from './1764350010000-credit-reversals.ts';
import { BulkCancels1764350020000 } from './1764350020000-bulk-cancels.ts';
import { Contradictions1764360010000 } from './1764360010000-contradictions.ts';

/** Every migration, oldest first. A migration that was released never changes. */
export const migrations = [
  Orders1763650000000,
  Wallet1763660300000,
  Applications1763660400000,
  Documents1763661500000,
  Keys1763662800000,
  Webhooks1763670000000,
  Operators1763683000000,
  Diagnostics1763684000000,
  Origins1763686000000,
  WebhookDue1763690000000,
  Recovery1763691000000,
  KeyMacs1763692100000,
  EndpointRevisions1763694100000,
  WriteChecks1763701000000,
  MissedReports1763703000000,
  Guards1763710000000,
  EventObjects1763810000000,
  DeliveryIndexes1764010010000,
  AccountLists1764010020000,
  ChangeLists1764010030000,
  ArchiveState1764040010000,
  OrderLists1764050010000,
  SecretKeys1764060010000,
  Writer1764070010000,
  FoundObjects1764100010000,
  ObjectKeys1764110010000,
  FailingSince1764120010000,
  Reconciliation1764130010000,
  UnclaimedReports1764230010000,
  Proposals1764240010000,
  UnclaimedReportAge1764240020000,
  Seals1764240030000,
  Withdrawals1764330010000,
  Audit1764340010000,
  AuditSeals1764340020000,
  Stops1764340030000,
  Releases1764340040000,
  FourEyes1764340050000,
  Acknowledgements1764340060000,
  CreditReversals1764350010000,
  BulkCancels1764350020000,
  Contradictions1764360010000,
];
