import { status } from '@grpc/grpc-js';
import { ReportFormat } from '../../../../gen/marina/admin/v1/reports_pb.ts';
import { csvLine } from '../../../../kit/csv.ts';
import type { Operator } from '../../../../kit/operator-tokens.ts';
import type { AdminCall } from '../call.ts';
import { AdminError, invalidField } from '../errors.ts';

/** How a line of a report looks in each form. */
export interface ReportForm<Line, Part> {
  readonly columns: readonly string[];
  /** The values of the columns, for each line of CSV that a line of the report has. */
  toLines(line: Line): readonly (readonly string[])[];
  toMessage(lines: readonly Line[]): Part;
}

/** A read page by page. The signal ends it. */
export type ReportLines<Line> = (signal: AbortSignal) => AsyncIterable<readonly Line[]>;

interface ReportBounds {
  /** How many reports a replica makes at once, of as many operators, so that the database stays free for orders. */
  readonly mostAtOnce: number;
  /** How long one may take, in real time. */
  readonly longestMs: number;
}

/** About as many lines as a message has. */
const linesTogether = 200;

/** The reports that a replica makes. A few at once, one of an operator, each for a bounded time. */
export class ReportsUnderWay {
  /** By operators' names, in which case does not tell persons apart. */
  readonly #underWay = new Set<string>();

  constructor(private readonly bounds: ReportBounds = { mostAtOnce: 2, longestMs: 1_800_000 }) {}

  /**
   * The messages of a report, about 200 lines in each, and a last one that says that it is complete. Nothing is read ahead: the next page
   * is read when the caller has taken the one before.
   */
  async *messages<Line, Part extends object>(
    { operator }: Pick<AdminCall, 'operator'>,
    format: ReportFormat,
    { columns, toLines, toMessage }: ReportForm<Line, Part>,
    signal: AbortSignal,
    lines: ReportLines<Line>,
  ) {
    if (!(format in ReportFormat)) throw invalidField('format', 'is not known.');
    const isCsv = format === ReportFormat.CSV;
    const toPart = (some: readonly Line[]) =>
      isCsv ? { text: some.flatMap(toLines).map(csvLine).join('') } : toMessage(some);
    yield* this.bounded(operator, async function* (checkTime) {
      if (isCsv) yield { text: csvLine(columns) };
      let count = 0;
      let waiting: Line[] = [];
      for await (const page of lines(signal)) {
        if (signal.aborted) return;
        checkTime();
        count += page.length;
        waiting.push(...page);
        if (waiting.length < linesTogether) continue;
        yield toPart(waiting);
        waiting = [];
      }
      if (signal.aborted) return;
      if (waiting.length > 0) yield toPart(waiting);
      yield { complete: true, count };
    });
  }

  /** The parts of an operator's report. `checkTime` throws when its time is over: it is called for each page that is read. */
  async *bounded<Part>(
    operator: Operator,
    parts: (checkTime: () => void) => AsyncIterable<Part>,
  ): AsyncGenerator<Part, void> {
    const { mostAtOnce, longestMs } = this.bounds;
    const person = operator.toLowerCase();
    if (this.#underWay.has(person)) throw tooMany('a report of yours is under way: read it to its end first');
    if (this.#underWay.size >= mostAtOnce) throw tooMany(`${mostAtOnce} other reports are under way: call again`);
    const end = performance.now() + longestMs;
    this.#underWay.add(person);
    try {
      yield* parts(() => {
        if (performance.now() >= end) throw tooLong();
      });
    } finally {
      this.#underWay.delete(person);
    }
  }
}

function tooMany(message: string): AdminError {
  return new AdminError(status.RESOURCE_EXHAUSTED, message);
}

function tooLong(): AdminError {
  const message = 'the report takes too long: ask for fewer days, or for one partner';
  return new AdminError(status.DEADLINE_EXCEEDED, message);
}
