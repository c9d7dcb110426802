import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { sessionTroubles } from './session/types.ts';
import { findingKinds } from './store/table.ts';

/** The adapter's Prometheus metrics. */
export class FixMetrics {
  readonly registry = new Registry();
  readonly isActive = this.#gauge('marina_fix_active', 'Whether this process has the session: 1 or 0.');
  readonly isUp = this.#gauge(
    'marina_fix_session_up',
    'Whether the session is logged on and nothing is missing: 1 or 0.',
  );
  readonly isInHours = this.#gauge('marina_fix_session_expected', "Whether it is the session's time: 1 or 0.");
  readonly isLoggedOut = this.#gauge(
    'marina_fix_session_logged_out',
    'Whether an operator has logged the session out: 1 or 0.',
  );
  readonly inDoubt = this.#gauge(
    'marina_fix_orders_in_doubt',
    'Orders of which nothing is known since they were sent.',
  );
  readonly oldestInDoubt = this.#gauge(
    'marina_fix_oldest_order_in_doubt_seconds',
    'The age of the oldest order in doubt; 0 if there is none.',
  );
  readonly open = this.#gauge('marina_fix_orders_open', 'Orders that the exchange has and that have not ended.');
  readonly unasked = this.#gauge(
    'marina_fix_orders_unasked',
    'Orders that the exchange must still be asked about, because a report may have been passed over.',
  );
  readonly openFindings = this.#gauge('marina_fix_findings_open', 'Findings that nobody has settled.');
  readonly isRestored = this.#gauge(
    'marina_fix_restored',
    'Whether the database came back from a backup and was not released, so that nothing is proven absent: 1 or 0.',
  );
  readonly isDropCopyExpected = this.#gauge(
    'marina_fix_drop_copy_expected',
    'Whether this process has a drop copy, and it is its time: 1 or 0.',
  );
  readonly isDropCopyUp = this.#gauge(
    'marina_fix_drop_copy_up',
    "Whether the drop copy's session is logged on and nothing is missing: 1 or 0.",
  );
  readonly dropCopyOthers = new Counter({
    name: 'marina_fix_drop_copy_others_total',
    help: 'Trades on the drop copy of orders that were not sent from here.',
    registers: [this.registry],
  });
  readonly troubles = new Counter({
    name: 'marina_fix_session_troubles_total',
    help: 'What was wrong in the session, by what.',
    labelNames: ['what'],
    registers: [this.registry],
  });
  readonly findings = new Counter({
    name: 'marina_fix_findings_total',
    help: 'Findings: what the exchange says and does not prove, by what.',
    labelNames: ['what'],
    registers: [this.registry],
  });
  readonly missingValues = new Counter({
    name: 'marina_fix_template_values_missing_total',
    help: 'Orders, cancels and questions that were not sent, because a placeholder of the template had no value.',
    registers: [this.registry],
  });
  readonly messagesDropped = new Counter({
    name: 'marina_fix_messages_dropped_total',
    help: 'Messages left out of the message log, because the database did not keep up.',
    registers: [this.registry],
  });
  readonly operatorCalls = new Counter({
    name: 'marina_fix_operator_calls_total',
    help: 'Calls of operators, by call and gRPC status.',
    labelNames: ['call', 'code'],
    registers: [this.registry],
  });
  readonly orders = new Histogram({
    name: 'marina_fix_order_duration_seconds',
    help: "The time from a SubmitOrder's arrival to its answer, by its gRPC status.",
    labelNames: ['code'],
    buckets: [0.002, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 15],
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // An increase is only seen of a series that was there before it, so each one begins with 0.
    for (const what of findingKinds) this.findings.inc({ what }, 0);
    for (const what of sessionTroubles) this.troubles.inc({ what }, 0);
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name, help, registers: [this.registry] });
  }
}
