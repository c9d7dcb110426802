import { escapedInJson, writtenOut } from '../kit/printable.ts';
import type { Check, CheckClass } from './check.ts';
import type { Result, Verdict } from './run.ts';
import { exitCodes } from './settings.ts';

const classes: readonly CheckClass[] = ['must', 'should', 'optional'];
const verdicts: readonly Verdict[] = ['passed', 'failed', 'not run', 'not offered'];
const idWidth = 34;

/** One result as a line, and what showed a breach below it. */
export function resultLines(result: Result): string {
  const { id, promise, verdict, reason, exchanges } = result;
  const head = `${verdict.toUpperCase().padEnd(11)} ${result.class.padEnd(8)} ${id.padEnd(idWidth)} ${promise}`;
  if (reason === undefined) return head;
  const indent = ' '.repeat(12);
  const calls = exchanges.flatMap(({ call, request, answer, status, details, tookMs }) => [
    `${indent}${call} ${JSON.stringify(request)}`,
    `${indent}  → ${status}${details ? ` "${details}"` : ''} after ${tookMs} ms${answer === undefined ? '' : ` ${JSON.stringify(answer)}`}`,
  ]);
  // The adapter's own texts are in the reason and in the details.
  return [head, `${indent}${reason}`, ...calls].map(writtenOut).join('\n');
}

/** How many of each class ended how. */
function countsOf(results: readonly Result[]): Record<CheckClass, Record<Verdict, number>> {
  const counts = (ofClass: CheckClass) =>
    Object.fromEntries(
      verdicts.map((verdict) => [
        verdict,
        results.filter((result) => result.class === ofClass && result.verdict === verdict).length,
      ]),
    );
  return Object.fromEntries(classes.map((each) => [each, counts(each)])) as Record<CheckClass, Record<Verdict, number>>;
}

/** The counts as a table. */
export function countsTable(results: readonly Result[]): string {
  const counts = countsOf(results);
  const row = (cells: readonly (string | number)[]) =>
    cells
      .map((cell) => String(cell).padEnd(12))
      .join('')
      .trimEnd();
  return [
    row(['', ...verdicts]),
    ...classes.map((each) => row([each, ...verdicts.map((verdict) => counts[each][verdict])])),
  ].join('\n');
}

/** Everything as JSON. */
export function resultJson(results: readonly Result[]): string {
  const json = JSON.stringify({ counts: countsOf(results), results }, undefined, 2);
  return json.split('\n').map(escapedInJson).join('\n');
}

/** The list of checks. */
export function checkList(checks: readonly Check[]): string {
  return checks.map((check) => `${check.class.padEnd(8)} ${check.id.padEnd(idWidth)} ${check.promise}`).join('\n');
}

/** Returns the exit code of the process: see `usage`. */
export function exitCodeOf(results: readonly Result[]): number {
  const has = (ofClass: CheckClass, verdict: Verdict) =>
    results.some((result) => result.class === ofClass && result.verdict === verdict);
  if (has('must', 'failed')) return exitCodes.mustFailed;
  if (has('should', 'failed')) return exitCodes.shouldFailed;
  return has('must', 'not run') || has('should', 'not run') ? exitCodes.notRun : exitCodes.passed;
}
