import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { untrustedKinds, untrustedReasons } from './peers/untrusted.ts';

/** The most partners that a metric names at once. */
export const maxPartnersNamed = 20;

const waitBuckets = [0.01, 0.02, 0.05, 0.1, 0.3, 1, 5, 60, 3_600, 36_000];

/**
 * The gateway's Prometheus metrics. Label values are our own names, so that their number is bounded; never another
 * system's text, and no id but those of a few partners (`partner`). `gateway/operators/telemetry/gauges` sets the gauges at each scrape.
 */
export class Metrics {
  readonly registry = new Registry();
  readonly #partners = new Set<string>();

  // Requests
  readonly requests = this.#histogram(
    'marina_request_duration_seconds',
    'Duration of requests by protocol, operation and HTTP status.',
    ['protocol', 'operation', 'status'],
    [0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 15],
  );
  readonly requestsUnderWay = this.#gauge('marina_requests_under_way', 'Requests under way in this process.');
  readonly refusals = this.#counter(
    'marina_request_refusals_total',
    'Requests answered with an error, by protocol, operation and error code.',
    ['protocol', 'operation', 'code'],
  );
  readonly limitRefusals = this.#counter('marina_limit_refusals_total', 'Requests refused by a limit, by which.', [
    'limit',
  ]);
  readonly credentialRefusals = this.#counter(
    'marina_credential_refusals_total',
    'Requests refused with 401, by why their credential was refused.',
    ['reason'],
  );
  readonly limitSlots = this.#gauge(
    'marina_limit_slots_used',
    'Slots in use in this process of the limits on requests in progress and on reads of the broker.',
  );
  readonly streams = this.#gauge('marina_open_streams', 'Streams partners have open with this process.');
  readonly connections = this.#gauge('marina_connections', "Connections open at the partners' ports.");
  readonly connectionsRefused = this.#counter(
    'marina_connections_refused_total',
    "Connections refused at the partners' ports and the operators': too many in all, or from one address.",
  );
  readonly operatorCalls = this.#counter(
    'marina_operator_calls_total',
    'Calls of operators, by call and gRPC status.',
    ['call', 'code'],
  );

  readonly largeCredits = this.#counter(
    'marina_large_credits_total',
    'Payments that were recorded and are above MARINA_FOUR_EYES_ABOVE_KOBO.',
  );
  readonly openProposals = this.#gauge(
    'marina_open_proposals',
    'Proposals that wait for a second operator. Counts to 10,000.',
  );
  readonly openProposalsAge = this.#gauge(
    'marina_open_proposals_oldest_seconds',
    'How long ago the oldest open proposal was made, in business time; 0 when none is open.',
  );

  readonly largeCorrections = this.#counter(
    'marina_large_corrections_total',
    'Debits of wallets and reversals of credits that were recorded and are above MARINA_FOUR_EYES_ABOVE_KOBO.',
  );

  // The broker and the calls to it
  readonly upstreamCalls = this.#histogram(
    'marina_upstream_call_duration_seconds',
    'Duration of calls to the broker by method and outcome: ok, nonsense, never_left, or a gRPC status.',
    ['method', 'outcome'],
    [0.002, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 15],
  );
  readonly reads = this.#gauge(
    'marina_broker_reads',
    "Partners' reads of the broker's records in this process, waiting and under way.",
    ['state'],
  );
  readonly unsettled = this.#gauge(
    'marina_unsettled',
    'Objects with an unknown outcome, by kind and state; at most 10000 of a kind.',
    ['kind', 'state'],
  );
  readonly unsettledAge = this.#gauge(
    'marina_unsettled_oldest_seconds',
    'How long ago the oldest unsettled object that no operator has acknowledged was stored, by kind and state, in business time.',
    ['kind', 'state'],
  );
  readonly acknowledged = this.#gauge(
    'marina_unsettled_acknowledged',
    'Unsettled objects that an operator has acknowledged, by kind and state.',
    ['kind', 'state'],
  );
  readonly held = this.#gauge('marina_withdrawals_held', 'Withdrawals that wait for their release by operators.');
  readonly heldAge = this.#gauge(
    'marina_withdrawals_held_oldest_seconds',
    'How long ago the withdrawal was stored that waits for its release and whose time is over first, in business time.',
  );
  readonly reconciliationBreaks = this.#gauge(
    'marina_reconciliation_breaks',
    "Differences from the broker's statements that are still found and not acknowledged, by kind; at most 10000 in all.",
    ['kind'],
  );
  readonly reconciliationLastDay = this.#gauge(
    'marina_reconciliation_last_day_timestamp_seconds',
    "The end of the last Lagos day that was compared completely with the broker's statement, as seconds since 1970.",
  );
  readonly reconciliationOverdue = this.#gauge(
    'marina_reconciliation_overdue_days',
    "Days of the last week whose evening has passed and that were not compared with the broker's statement.",
  );
  readonly reconciliationOverdueAge = this.#gauge(
    'marina_reconciliation_overdue_seconds',
    'How long ago the evening of the oldest of these days passed, in business time; 0: all were compared.',
  );
  readonly reconciliationNotOffered = this.#gauge(
    'marina_reconciliation_not_offered',
    'Whether the broker gives no statements, as far as it was asked.',
  );
  readonly reconciliationSeconds = this.#histogram(
    'marina_reconciliation_duration_seconds',
    "How long it took to compare a day with the broker's statement, by what became of it.",
    ['state'],
    waitBuckets,
  );
  readonly reportPosition = this.#gauge(
    'marina_report_position',
    "Number of the upstream's last report that this process applied, by kind.",
    ['kind'],
  );
  readonly reportStreams = this.#gauge(
    'marina_report_streams',
    "Whether this process follows the upstream's stream of reports, by kind.",
    ['kind'],
  );
  readonly reportDelays = this.#histogram(
    'marina_report_delay_seconds',
    "Age of a batch's last report when it was applied, by kind, by the upstream's clock and ours.",
    ['kind'],
    waitBuckets,
  );
  readonly contradictions = this.#counter(
    'marina_contradictions_total',
    "The upstream's reports and answers that contradict an object's state, by kind and partner.",
    ['kind', 'partner'],
  );
  readonly openContradictions = this.#gauge(
    'marina_contradictions_open',
    'Those of them that operators have neither settled nor acknowledged, by kind and partner; at most 10000 in all, and 20 partners.',
    ['kind', 'partner'],
  );
  readonly unclaimedReports = this.#counter(
    'marina_unclaimed_reports_total',
    'Objects that are not stored and that a batch of reports was about, by kind.',
    ['kind'],
  );
  readonly databaseWentBack = this.#counter(
    'marina_database_went_back_total',
    'How often the database lacked what it had acknowledged of the reports, by kind.',
    ['kind'],
  );
  readonly falseRefusals = this.#counter(
    'marina_false_refusals_total',
    'Objects that the broker has although they were reported as never arrived, by kind and partner.',
    ['kind', 'partner'],
  );
  readonly brokerClockOffset = this.#gauge(
    'marina_broker_clock_offset_seconds',
    "How far the broker's clock is ahead of this process's; absent while the broker states no time.",
  );

  // Documents
  readonly documents = this.#counter('marina_documents_total', 'Documents sent to the broker, by outcome.', [
    'outcome',
  ]);
  readonly files = this.#gauge('marina_files_in_memory', 'Files that are being received or sent in this process.');
  readonly images = this.#gauge('marina_images', 'Images that wait, and that are being decoded.', ['state']);
  readonly decoderWalls = this.#gauge(
    'marina_decoder_walls',
    'Whether a wall holds around the processes that decode images.',
    ['wall'],
  );

  // Events
  readonly outbox = this.#gauge(
    'marina_outbox_events',
    'Committed events that wait in the outbox for one of their consumers; at most 10000.',
    ['consumer'],
  );
  readonly outboxAge = this.#gauge(
    'marina_outbox_oldest_seconds',
    'How long ago the oldest event that waits for a consumer was committed; 0 when none waits.',
    ['consumer'],
  );
  readonly untrusted = this.#counter(
    'marina_nats_untrusted_total',
    'What came from NATS and was not believed, because no gateway of this ring can have sent it, by kind and reason.',
    ['kind', 'reason'],
  );
  readonly streamPending = this.#gauge(
    'marina_stream_pending_messages',
    'Messages NATS holds for a consumer that has not acknowledged them; absent while NATS is away.',
    ['consumer'],
  );

  // Webhooks
  readonly webhookAttempts = this.#histogram(
    'marina_webhook_attempt_duration_seconds',
    'Duration of webhook attempts by outcome and, if they failed, by error class.',
    ['outcome', 'error_class'],
    [0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 10],
  );
  readonly webhookWaits = this.#histogram(
    'marina_webhook_wait_seconds',
    'How long after an event was due its attempt began, in business time.',
    [],
    [0.01, 0.05, 0.1, 0.5, 1, 5, 60, 600, 3_600],
  );
  readonly webhookArrivals = this.#histogram(
    'marina_webhook_commit_to_delivered_seconds',
    'From the commit of a change to the 2xx of its endpoint.',
    [],
    waitBuckets,
  );
  readonly webhookLag = this.#gauge(
    'marina_webhook_due_lag_seconds',
    'How long the oldest event has waited in this process for a slot, in business time.',
  );
  readonly webhookUndelivered = this.#gauge(
    'marina_webhook_undelivered_seconds',
    'For how long an endpoint has delivered nothing while events wait, in business time; from 5 minutes, of the longest 20.',
    ['partner', 'by'],
  );
  readonly webhookExpired = this.#counter(
    'marina_webhook_expired_events_total',
    'Events that were not delivered in time and are in the feed only, by partner.',
    ['partner'],
  );
  readonly webhookPaused = this.#gauge(
    'marina_webhook_paused_endpoints',
    'Endpoints that are paused, by failures or by an operator.',
    ['by'],
  );

  // The database
  readonly databaseConnections = this.#gauge(
    'marina_database_connections',
    'Database connections in use, work that waits for one, and how many there can be.',
    ['state'],
  );
  readonly partnerQueue = this.#gauge(
    'marina_partner_queue_waiting',
    "Pieces of work that wait for their partners' turn in this process.",
  );
  readonly databaseAhead = this.#gauge(
    'marina_database_clock_ahead_seconds',
    "How far the database's clock is ahead of this process's, to within half a round trip.",
  );
  readonly leasesHeld = this.#gauge('marina_leases_held', 'Leases this process holds, by name.', ['lease']);
  readonly leasesTaken = this.#gauge('marina_leases_taken', 'Leases any process holds, by name.', ['lease']);
  readonly removalOverdue = this.#gauge(
    'marina_removal_overdue_seconds',
    'How long ago the oldest row that a worker should have removed became old, in business time; 0 when none is.',
    ['worker'],
  );
  readonly faultyAudit = this.#gauge(
    'marina_audit_faulty_batches',
    'Batches of the audit whose entries do not match their seal, on the replica that checks them.',
  );
  readonly faultyLedgers = this.#gauge(
    'marina_faulty_ledgers',
    'Partners whose ledger is faulty, on the replica that checks them; at most 20.',
    ['partner'],
  );
  readonly stuckObjects = this.#gauge(
    'marina_objects_stuck',
    'Partners whose objects this process cannot change; at most 20.',
    ['partner'],
  );
  readonly stuckEvents = this.#gauge(
    'marina_events_stuck',
    'Partners whose events this process cannot consume; at most 20.',
    ['partner'],
  );

  // This process
  readonly certificateExpires = this.#gauge(
    'marina_certificate_expires_seconds',
    'In how long the certificate of a port or link expires, or the last of its authorities; negative if it has. Absent without one.',
    ['link'],
  );
  readonly revocationListExpires = this.#gauge(
    'marina_revocation_list_expires_seconds',
    'In how long the first revocation list of a port ends; negative if it has. Then its port refuses all certificates.',
    ['link'],
  );
  readonly changedFilesRefused = this.#gauge(
    'marina_changed_files_refused',
    '1 while changed files of a certificate or secret are refused, and the former ones are in use.',
    ['link'],
  );
  readonly operatorTokenExpires = this.#gauge(
    'marina_operator_token_expires_seconds',
    "In how long an operator's last token with one of his roles expires; negative if it has. Absent for one with a token that does not expire.",
    ['operator'],
  );
  readonly operatorTokenEndless = this.#gauge(
    'marina_operator_token_endless',
    '1 for an operator with a token that does not expire.',
    ['operator'],
  );
  readonly uncaughtErrors = this.#counter(
    'marina_uncaught_errors_total',
    'Errors that no code caught, by outcome: the process survived, or stopped.',
    ['outcome'],
  );
  readonly logLinesDropped = this.#counter(
    'marina_log_lines_dropped_total',
    'Lines of the log that were dropped, because they could not be written and too many waited.',
  );
  readonly troubles = this.#gauge(
    'marina_part_trouble_seconds',
    'How long a part has been in trouble; absent while it works.',
    ['part'],
  );
  readonly paused = this.#gauge('marina_trading_paused', 'Whether trading is paused.');
  readonly stops = this.#gauge('marina_stops_open', 'How many stops of partners, accounts or symbols are open.');
  readonly bulkCancels = this.#gauge('marina_bulk_cancels_running', "How many operators' jobs that cancel orders run.");
  readonly bulkCancelOrdersLeft = this.#gauge(
    'marina_bulk_cancel_orders_left',
    'How many orders the running jobs have left.',
  );
  readonly bulkCancelIdle = this.#gauge(
    'marina_bulk_cancel_idle_seconds',
    'The time since an order got a result, in the running job that rests longest; 0 if none runs.',
  );
  readonly clockOffset = this.#gauge('marina_clock_offset_seconds', 'How far business time is ahead of real time.');

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // A series that begins with its first count shows no increase, and this one must be seen at once.
    for (const outcome of ['survived', 'stopped']) this.uncaughtErrors.inc({ outcome }, 0);
    for (const kind of untrustedKinds) for (const reason of untrustedReasons) this.untrusted.inc({ kind, reason }, 0);
  }

  /** The label of a partner in counters: its id for the first 20 that this process counts something of, then `other`. */
  partner(id: string): string {
    if (this.#partners.size < maxPartnersNamed) this.#partners.add(id);
    return this.#partners.has(id) ? id : 'other';
  }

  #counter<Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #gauge<Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram<Label extends string = never>(
    name: string,
    help: string,
    labelNames: Label[],
    buckets: number[],
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.registry] });
  }
}
