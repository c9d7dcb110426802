import type { GetStatusRequest } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { atMost } from '../../../../kit/at-most.ts';
import type { SystemClock } from '../../../../kit/clock.ts';
import { groupBy } from '../../../../kit/group.ts';
import type { Nats } from '../../../../kit/nats.ts';
import { type OperatorToken, operatorsWithoutEnd, roleHolders } from '../../../../kit/operator-tokens.ts';
import { version } from '../../../../kit/version.ts';
import type { Live } from '../../../../kit/watched-files.ts';
import type { EventStream } from '../../../delivery/events/stream.ts';
import { dispatcherLeasePrefix } from '../../../delivery/webhooks/table.ts';
import type { Database } from '../../../store/database.ts';
import { milliseconds, statement, toBigInt } from '../../../store/statement.ts';
import type { Broker } from '../../../trading/broker/broker.ts';
import type { ClockAgreement } from '../../../trading/broker/clock.ts';
import { reportsPosition } from '../../../trading/submission/report-days.ts';
import { readReconciliation } from '../../reconciliation/figures-store.ts';
import { type BacklogFigures, maxCounted, readBacklog } from '../../telemetry/backlog.ts';
import { readDatabaseClock } from '../../telemetry/database-clock.ts';
import type { Health } from '../../telemetry/health.ts';
import { countOpenProposals } from '../proposals/table.ts';
import { countUnsettled } from './unsettled.ts';

interface StatusParts {
  readonly database: Database;
  readonly clock: SystemClock;
  readonly nats: Pick<Nats, 'connection'>;
  readonly stream: Pick<EventStream, 'pending'>;
  readonly broker: Pick<Broker, 'id' | 'clock' | 'orders'>;
  readonly clocks: { readonly known: ClockAgreement };
  readonly health: Pick<Health, 'troubles'>;
  /** This process's name among the holders of leases. */
  readonly holder: string;
  readonly startedAt: number;
  /** The minute of the Lagos day at which it is compared with the broker's statement. */
  readonly reconciliationTime: number;
  /** Whether an operator may approve his own proposals. */
  readonly singleOperator: boolean;
  /** Operators' tokens, as they are now. */
  readonly operatorTokens: Pick<Live<readonly OperatorToken[]>, 'current'>;
  /** The amount above which a credit needs a second operator, in kobo; undefined: four eyes are off. */
  readonly fourEyesAboveKobo: bigint | undefined;
}

/** A part of the status that takes longer to read is left out. */
const longestMs = 3_000;
const maxLeases = 500;

/** The operators' call that shows the state of the gateway. */
export function statusCalls(parts: StatusParts) {
  const { database, clock, nats, stream, broker, clocks } = parts;

  async function getStatus({ brief }: Pick<GetStatusRequest, 'brief'>) {
    const [troubles = [], facts, backlog, queues = [], leases = [], honours, pending, days] = await Promise.all([
      inTime(parts.health.troubles()),
      inTime(readFacts()),
      inTime(readBacklog(database, clock)),
      inTime(readQueues()),
      inTime(readLeases()),
      inTime(broker.orders.honoursNotAfter()),
      inTime(stream.pending()),
      inTime(readReconciliation(database, clock, parts.reconciliationTime)),
    ]);
    const aheadMs = broker.clock.estimateMs;
    return {
      replica: {
        name: parts.holder,
        version,
        nodeVersion: process.versions.node,
        startedAt: parts.startedAt,
      },
      environment: database.environment,
      troubles: troubles.map((trouble) => ({ ...trouble, since: trouble.sinceMs })),
      upstream: {
        connected: broker.orders.connected,
        honoursNotAfter: honours,
        orderReports: facts?.orderReports,
        applicationReports: facts?.applicationReports,
        clockAgreement: clocks.known === 'unknown' ? undefined : clocks.known,
        clockAheadMs: aheadMs === undefined ? undefined : Math.round(aheadMs),
      },
      queues: [
        ...(backlog === undefined ? [] : backlogQueues(backlog)),
        ...[...(pending ?? [])].map(([consumer, count]) => queue(`stream ${consumer}`, count)),
        ...queues,
      ].filter(({ count }) => !brief || count > 0),
      leases: leases.filter(({ isHeld }) => !brief || !isHeld),
      tradingPausedSince: facts?.pausedAt,
      now: clock.now(),
      businessAheadMs: clock.offsetMs,
      databaseAheadMs: facts?.aheadMs,
      databaseRoundTripMs: facts?.roundTripMs,
      schemaVersion: facts?.schema,
      databaseVersion: facts?.version,
      natsVersion: nats.connection?.info?.version,
      reconciliation: days && {
        isOffered: days.isOffered,
        lastCompleteDay: days.lastDay,
        daysOverdue: days.overdue,
        openBreaks: days.breaks.reduce((sum, [, count]) => sum + count, 0),
      },
      singleOperator: parts.singleOperator,
      fourEyesAboveKobo: parts.fourEyesAboveKobo,
      operatorTokens: tokenFigures(parts.operatorTokens.current, clock.realNow()),
    };
  }

  async function readFacts() {
    const [orderReports, applicationReports] = [
      reportsPosition(broker.id, 'order'),
      reportsPosition(broker.id, 'application'),
    ];
    const databaseClock = await readDatabaseClock(database, clock);
    const [[environment] = [], [schema] = [], positions = []] = await database.readAll([
      statement('SELECT trading_paused_at FROM environment WHERE id = 1'),
      statement('SELECT name FROM migrations ORDER BY timestamp DESC LIMIT 1'),
      statement(`SELECT name, position FROM positions WHERE name IN ('${orderReports}', '${applicationReports}')`),
    ]);
    const position = (name: string) => BigInt(String(positions.find((row) => row.name === name)?.position ?? 0));
    return {
      ...databaseClock,
      schema: String(schema?.name ?? ''),
      pausedAt: milliseconds(environment?.trading_paused_at ?? null),
      orderReports: position(orderReports),
      applicationReports: position(applicationReports),
    };
  }

  async function readQueues() {
    const now = clock.now();
    const [cancels = [], documents = [], due = [], proposals = []] = await database.readAll([
      countUnsettled('cancel', maxCounted),
      countUnsettled('document', maxCounted),
      statement(
        `SELECT COUNT(*) AS count, MIN(since) AS oldest FROM (
          SELECT COALESCE(due_at, taken_at) AS since FROM webhook_deliveries FORCE INDEX (webhook_deliveries_age)
          WHERE queue IN (1, 2) AND COALESCE(due_at, taken_at) <= ? LIMIT ${maxCounted}) AS due`,
        new Date(now),
      ),
      countOpenProposals(now, maxCounted),
    ]);
    return Object.entries({ cancels, documents, 'webhooks due': due, proposals }).map(([name, [row]]) => {
      const oldest = milliseconds(row?.oldest ?? null);
      return queue(name, Number(row?.count ?? 0), oldest === null ? undefined : now - oldest);
    });
  }

  async function readLeases() {
    const left = 'TIMESTAMPDIFF(MICROSECOND, NOW(3), expires_at) DIV 1000';
    // An expired dispatcher lease belongs to a process that is gone. Other leases are few and stay.
    const rows = await database.read(
      statement(
        `SELECT name, holder, fence, ${left} AS left_ms FROM leases
          WHERE expires_at > NOW(3) OR name NOT LIKE ? ORDER BY name LIMIT ${maxLeases}`,
        `${dispatcherLeasePrefix}%`,
      ),
    );
    return rows.map(({ name, holder, fence, left_ms: leftMs }) => {
      const isHeld = Number(leftMs) > 0;
      const isOwn = isHeld && holder === parts.holder;
      const expiresInMs = toBigInt(leftMs);
      return { name: String(name), holder: String(holder), fence: toBigInt(fence), isHeld, isOwn, expiresInMs };
    });
  }

  return { getStatus };
}

function tokenFigures(tokens: readonly OperatorToken[], realNow: number) {
  const operators = new Set(tokens.map(({ name }) => name.toLowerCase())).size;
  return { operators, withoutEnd: operatorsWithoutEnd(tokens), holders: roleHolders(tokens, realNow) };
}

function backlogQueues({ outbox, held, contradictions, unsettled }: BacklogFigures) {
  const figures = groupBy(unsettled, ({ kind }) => kind);
  return [
    queue('outbox webhooks', outbox.count, outbox.oldestMs),
    queue('releases', held.count, held.oldestMs),
    queue('contradictions', contradictions.count, contradictions.oldestMs),
    ...[...figures].map(([kind, ofKind]) => {
      const count = ofKind.reduce((sum, figure) => sum + figure.count, 0);
      return queue(`${kind}s`, count, Math.max(...ofKind.map(({ oldestMs }) => oldestMs)));
    }),
  ];
}

/** A queue with the age of its oldest entry; undefined: unknown. */
function queue(name: string, count: number, oldestMs?: number) {
  const isKnown = oldestMs !== undefined && count > 0;
  const age = isKnown ? Math.max(0, Math.round(oldestMs)) : undefined;
  return { name, count, atLeast: count >= maxCounted, oldestMs: age };
}

/** The result of some work, or undefined if it fails or takes too long. The troubles report the cause. */
async function inTime<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return (await atMost(longestMs, work)) ? await work : undefined;
  } catch {
    return undefined;
  }
}
