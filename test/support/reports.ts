import type { JsonObject } from '@bufbuild/protobuf';
import { firstIdAt } from '../../src/gateway/edge/ids.ts';
import type { StoredOrder } from '../../src/gateway/trading/orders/table.ts';
import { lagosDay } from '../../src/kit/clock.ts';
import { operatorToken } from './gateway.ts';
import type { Found, TestOperator } from './operator.ts';
import { plainOrder } from './plain-order.ts';

/** The messages of a report. */
export async function reportParts(
  { client }: TestOperator,
  name: string,
  request: JsonObject,
  signal?: AbortSignal,
): Promise<Found[]> {
  const parts: Found[] = [];
  for await (const part of client.stream(`marina.admin.v1.Reports.${name}`, request, operatorToken, signal)) {
    parts.push(part);
  }
  return parts;
}

/** The lines of a whole report, from one of its fields. Throws unless it says that it is complete, with how many lines it has. */
export async function reported(operator: TestOperator, name: string, field: string, request: JsonObject) {
  const parts = await reportParts(operator, name, request);
  const lines = parts.flatMap((part) => part[field] ?? []);
  const last = parts.at(-1);
  if (last?.complete !== true || Number(last.count ?? 0) !== lines.length) throw new Error(JSON.stringify(last));
  return lines as Found[];
}

/** A report as CSV, line by line, without the names of its columns. */
export async function csvOf(operator: TestOperator, name: string, request: JsonObject): Promise<string[]> {
  const parts = await reportParts(operator, name, { ...request, format: 'REPORT_FORMAT_CSV' });
  if (parts.at(-1)?.complete !== true) throw new Error('the report was cut off');
  const lines = parts
    .map(({ text = '' }) => text)
    .join('')
    .split('\r\n');
  return lines.slice(1, -1);
}

/** An order that was filled, as it is stored at an instant. `number` tells those of one instant apart. */
export function filledOrder(
  partnerId: string,
  at: number,
  number: number,
  more: Partial<StoredOrder> = {},
): StoredOrder {
  const letters = [...'234567abcdefghijklmnopqrstuvwxyz'];
  const tail = [...number.toString(32).padStart(5, '0')].map((digit) => letters[Number.parseInt(digit, 32)]).join('');
  return {
    ...plainOrder,
    ...{
      partnerId,
      id: `${firstIdAt('ord', at).slice(0, -11)}${partnerId.slice(-6)}${tail}`,
      createdAt: at,
      updatedAt: at,
      filledAt: at,
    },
    ...{ state: 'filled', countedDay: lagosDay(at), filledQuantity: 100n, filledValueKobo: 100_000n, checkAt: null },
    ...more,
  };
}
