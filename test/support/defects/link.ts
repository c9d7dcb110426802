import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { AccountStatus, InstrumentKind, InstrumentSchema } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Status } from '../defective-adapter.ts';
import { hourMs, onStatus, type SeededDefect } from './defect.ts';

/** The defects of an adapter before it takes an order. */
export const linkDefects: readonly SeededDefect[] = [
  {
    adapter: 'does not say what it can',
    breaks: 'capabilities-answered',
    also: ['withdrawal-destinations-stated'],
    defect: { orders: { getCapabilities: () => Promise.reject(new Status(status.INTERNAL)) } },
  },
  {
    adapter: 'has a clock that is an hour late',
    breaks: 'broker-time-true',
    defect: {
      orders: {
        getCapabilities: async ({ next }) => ({ ...(await next()), brokerTime: timestampFromMs(Date.now() - hourMs) }),
      },
    },
  },
  {
    adapter: 'invents an instrument for a symbol that nobody knows',
    breaks: 'context-unknown-symbol',
    defect: {
      orders: {
        getTradingContext: async ({ request: { symbol }, next }) => {
          const answer = await next();
          return { ...answer, instrument: answer.instrument ?? create(InstrumentSchema, { symbol }) };
        },
      },
    },
  },
  {
    adapter: 'takes every account for one that can trade',
    breaks: 'context-unknown-account',
    defect: {
      orders: {
        getTradingContext: async ({ next }) => ({ ...(await next()), accountStatus: AccountStatus.ACTIVE }),
      },
    },
  },
  {
    adapter: 'does not say what kind an instrument is',
    breaks: 'context-fields',
    defect: {
      orders: {
        getTradingContext: async ({ next }) => {
          const answer = await next();
          if (answer.instrument) answer.instrument.kind = InstrumentKind.UNSPECIFIED;
          return answer;
        },
      },
    },
  },
  {
    adapter: 'computes a charge with floating-point numbers',
    breaks: 'estimate-exact',
    defect: {
      orders: {
        estimateOrder: async ({ next }) => {
          const answer = await next();
          return { ...answer, commissionKoboDecimal: String(Number(answer.commissionKoboDecimal) / 7) };
        },
      },
    },
  },
  {
    adapter: 'rounds the total of an estimate to whole kobo',
    breaks: 'estimate-adds-up',
    defect: {
      orders: {
        estimateOrder: async ({ next }) => {
          const answer = await next();
          return { ...answer, totalKoboDecimal: `${Math.ceil(Number(answer.totalKoboDecimal) + 0.5)}.0` };
        },
      },
    },
  },
  {
    adapter: 'estimates nothing for an unknown symbol with the wrong status',
    breaks: 'estimate-unknown-symbol',
    defect: {
      orders: {
        estimateOrder: ({ next }) =>
          onStatus(next(), status.NOT_FOUND, () => Promise.reject(new Status(status.UNAVAILABLE))),
      },
    },
  },
];
