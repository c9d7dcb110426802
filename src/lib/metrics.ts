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

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }
}
