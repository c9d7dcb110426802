import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type MarketDay as BrokerDay,
  MarketDayKind as BrokerKind,
  MarketDayKindSchema,
} from '../../../gen/marina/broker/v1/reference_pb.ts';
import { type MarketDay, MarketDayKind, MarketDaySchema } from '../../../gen/marina/gateway/v1/reference_pb.ts';
import { daysAfter, isDate, lagosDay, toSecond } from '../../../kit/clock.ts';
import { translateEnum, unnamed, withStoredNames } from '../../../kit/enums.ts';
import { ApiError } from '../../edge/errors.ts';

/** The most days in a range, and how many days after its first one it ends unless a request says otherwise. */
const maxDays = 366;
const usualDaysAfter = 30;

/** From one Lagos day to another, both YYYY-MM-DD and both inclusive. */
export interface Calendar {
  readonly from: string;
  readonly to: string;
}

/** The days of a request: by default from today, for a month. Throws `invalid_request` for an invalid day. */
export function calendarRange(asked: Partial<Record<'from' | 'to', string | undefined>>, now: number): Calendar {
  const from = asked.from ?? lagosDay(now);
  if (!isDate(from)) throw refusal('from', 'must be a date, YYYY-MM-DD.');
  const to = asked.to ?? daysAfter(from, usualDaysAfter);
  if (!isDate(to)) throw refusal('to', 'must be a date, YYYY-MM-DD.');
  if (from > to) {
    throw asked.from === undefined
      ? refusal('to', `must not be before today in Lagos, ${from}, unless \`from\` is given.`)
      : refusal('from', 'must not be after `to`.');
  }
  if (to > daysAfter(from, maxDays - 1)) {
    throw refusal('to', `is too late: there are more than ${maxDays} days in the range. Ask for fewer days at a time.`);
  }
  return { from, to };
}

const kindOf = translateEnum(BrokerKind, MarketDayKind, MarketDayKindSchema);

export function toMarketDay({ date, kind, name, opensAt, closesAt, settlementDate }: BrokerDay): MarketDay {
  const message = create(MarketDaySchema, {
    date,
    kind: kindOf(kind),
    name: name || undefined,
    opensAt: opensAt && toSecond(timestampMs(opensAt)),
    closesAt: closesAt && toSecond(timestampMs(closesAt)),
    settlementDate: settlementDate || undefined,
  });
  return withStoredNames(message, { kind: unnamed });
}

function refusal(param: 'from' | 'to', problem: string): ApiError {
  return new ApiError('invalid_request', { param, message: `\`${param}\` ${problem}` });
}
