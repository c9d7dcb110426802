import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** What the gateway counts, for Prometheus. */
export class Metrics {
  readonly registry = new Registry();

  readonly requests = new Histogram({
    name: 'marina_request_duration_seconds',
    help: 'Duration of requests by door, operation and HTTP status.',
    labelNames: ['door', 'operation', 'status'],
    buckets: [0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 15],
    registers: [this.registry],
  });

  readonly refusals = new Counter({
    name: 'marina_request_refusals_total',
    help: 'Requests answered with an error, by error code.',
    labelNames: ['code'],
    registers: [this.registry],
  });

  readonly reportPosition = new Gauge({
    name: 'marina_report_position',
    help: "Number of the last of the upstream's reports this process applied, by what they are about.",
    labelNames: ['kind'],
    registers: [this.registry],
  });

  readonly contradictions = new Counter({
    name: 'marina_contradictions_total',
    help: 'What the upstream said, by report, answer or look-up, that contradicts the state of an object, by its kind.',
    labelNames: ['kind'],
    registers: [this.registry],
  });

  readonly webhookAttempts = new Histogram({
    name: 'marina_webhook_attempt_duration_seconds',
    help: 'Duration of webhook attempts by outcome and, where they failed, by error class.',
    labelNames: ['outcome', 'error_class'],
    buckets: [0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 10],
    registers: [this.registry],
  });

  readonly webhookWaits = new Histogram({
    name: 'marina_webhook_wait_seconds',
    help: 'How long after an event was due its attempt began, in business time.',
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 60, 600, 3_600],
    registers: [this.registry],
  });

  readonly webhookArrivals = new Histogram({
    name: 'marina_webhook_commit_to_delivered_seconds',
    help: 'From the commit of a change to the 2xx of its endpoint.',
    buckets: [0.01, 0.02, 0.05, 0.1, 0.3, 1, 5, 60, 3_600, 36_000],
    registers: [this.registry],
  });

  readonly webhookLag = new Gauge({
    name: 'marina_webhook_due_lag_seconds',
    help: 'How long the oldest event that waits in this process for a place could have been sent, in business time.',
    registers: [this.registry],
  });

  readonly webhookPaused = new Gauge({
    name: 'marina_webhook_paused_endpoints',
    help: 'Endpoints that are paused, by failures or by an operator.',
    labelNames: ['by'],
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }
}
