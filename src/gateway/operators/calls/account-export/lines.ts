import type { AccountLineKind } from '../../../../gen/marina/admin/v1/audit_pb.ts';
import type { EnumName } from '../../../../kit/enums.ts';
import type { Days } from '../reports/days.ts';

/** A line of the export: a JSON object with its kind. */
export interface AccountLine extends Readonly<Record<string, unknown>> {
  readonly line: EnumName<typeof AccountLineKind>;
}

/** Whether an instant is on one of some days. */
export function isOn({ from, until }: Days, atMs: number): boolean {
  return atMs >= from && atMs < until;
}

/** An instant as lines have it. */
export function timeText(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

/** Whole lines. */
export function toText(lines: readonly AccountLine[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}
