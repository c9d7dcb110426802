import { create, type DescMessage, getOption } from '@bufbuild/protobuf';
import { CreateAllocationRequestSchema } from '../../../gen/marina/gateway/v1/allocations_pb.ts';
import {
  type Allowance,
  AllowanceSchema,
  type Limits,
  PartnerLimitsSchema,
} from '../../../gen/marina/gateway/v1/limits_pb.ts';
import { CreateOrderRequestSchema } from '../../../gen/marina/gateway/v1/orders_pb.ts';
import { CreateWithdrawalRequestSchema } from '../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import { field as fieldOption } from '../../../gen/marina/options/v1/options_pb.ts';
import { type Clock, lagosDay, nextLagosMidnight, toSecond } from '../../../kit/clock.ts';
import type { HandlersOf } from '../../edge/call.ts';
import type { CallerLimits } from '../../edge/limits/caller-limits.ts';
import type { Database } from '../../store/database.ts';
import { toBigInt } from '../../store/statement.ts';
import { readDay, type UsageKind } from '../../trading/submission/day-limit.ts';
import { remaining } from '../../trading/submission/rules.ts';

export function limitHandlers(
  database: Database,
  clock: Clock,
  callerLimits: CallerLimits,
  requestBodyBytes: number,
): HandlersOf<typeof Limits> {
  const perRequest = {
    orderQuantity: maximumOf(CreateOrderRequestSchema, 'quantity'),
    allocationKobo: maximumOf(CreateAllocationRequestSchema, 'amount_kobo'),
    withdrawalKobo: maximumOf(CreateWithdrawalRequestSchema, 'amount_kobo'),
    requestBodyBytes: BigInt(requestBodyBytes),
  };

  return {
    async getLimits(_, { caller }) {
      const { partnerId, limits } = caller;
      const now = clock.now();
      const day = lagosDay(now);
      const [rows, inProgress] = await Promise.all([
        database.read(readDay(partnerId, day)),
        callerLimits.underWay(caller),
      ]);
      const used = new Map(rows.map((row) => [row.kind as UsageKind, toBigInt(row.used_kobo)]));
      const midnight = nextLagosMidnight(now);
      return create(PartnerLimitsSchema, {
        day,
        requestsPerSecond: { limit: BigInt(limits.requestsPerSecond), burst: BigInt(limits.requestsBurst) },
        requestsUnderWay: allowance(BigInt(limits.requestsUnderWay), BigInt(inProgress)),
        ordersKoboPerDay: allowance(limits.ordersKoboPerDay, used.get('orders'), midnight),
        allocationsKoboPerDay: allowance(limits.allocationsKoboPerDay, used.get('allocations'), midnight),
        perRequest,
      });
    },
  };
}

function allowance(limit: bigint, used = 0n, resetsAt?: number): Allowance {
  const reset = resetsAt === undefined ? undefined : toSecond(resetsAt);
  return create(AllowanceSchema, { limit, used, remaining: remaining(limit, used), resetsAt: reset });
}

/** The largest value of a request's field, from its field rule. */
function maximumOf(schema: DescMessage, name: string): bigint {
  const field = schema.fields.find((each) => each.name === name);
  const maximum = field && getOption(field, fieldOption).maximum;
  if (maximum === undefined) throw new Error(`${schema.typeName} has no bound for ${name}`);
  return maximum;
}
