import { create } from '@bufbuild/protobuf';
import {
  AgreedLimit,
  SetFeaturesRequestSchema,
  SetLimitsRequestSchema,
} from '../../../gen/marina/admin/v1/partners_pb.ts';
import { Feature } from '../../../gen/marina/options/v1/options_pb.ts';
import type { AuditedBy } from '../../edge/auth/audit-store.ts';
import type { PartnerLimits } from '../../edge/auth/caller.ts';
import {
  changedFeatureList,
  defaultLimits,
  featureList,
  partners,
  type StoredPartner,
  saveLimits,
  toFeatures,
} from '../../edge/auth/store.ts';
import { queryFact } from '../../store/facts.ts';
import { invalidField } from './errors.ts';
import {
  type FourEyesParts,
  type GuardedCall,
  type GuardedChange,
  type GuardedWork,
  proposedWith,
} from './proposals/four-eyes.ts';

/** The limits by the numbers of the proto. */
const agreedLimits: Partial<Record<AgreedLimit, keyof PartnerLimits>> = {
  [AgreedLimit.REQUESTS_PER_SECOND]: 'requestsPerSecond',
  [AgreedLimit.REQUESTS_BURST]: 'requestsBurst',
  [AgreedLimit.REQUESTS_UNDER_WAY]: 'requestsUnderWay',
  [AgreedLimit.ORDERS_KOBO_PER_DAY]: 'ordersKoboPerDay',
  [AgreedLimit.ALLOCATIONS_KOBO_PER_DAY]: 'allocationsKoboPerDay',
};
const limitNames = Object.values(agreedLimits);

/** The limits of a day's money. The others protect the gateway. */
const moneyLimits = ['ordersKoboPerDay', 'allocationsKoboPerDay'] as const;

export type AgreedLimits = Partial<PartnerLimits>;

/** The limits that a request or a partner's row has. */
export function limitsIn(from: { readonly [Name in keyof PartnerLimits]?: PartnerLimits[Name] | null } = {}) {
  const given = limitNames.flatMap((name) => (from[name] == null ? [] : [[name, from[name]]]));
  return Object.fromEntries(given) as AgreedLimits;
}

/** The limits of money that are higher after a change than before. One that is not agreed is the default. */
export function raisedLimits(before: AgreedLimits, after: AgreedLimits): (typeof moneyLimits)[number][] {
  const inForce = (limits: AgreedLimits) => ({ ...defaultLimits, ...limits });
  return moneyLimits.filter((name) => inForce(after)[name] > inForce(before)[name]);
}

/** Whether a change of features lets a partner take money out. */
export function opensWithdrawals(before: ReadonlySet<Feature>, after: readonly Feature[]): boolean {
  return after.includes(Feature.WITHDRAWALS) && !before.has(Feature.WITHDRAWALS);
}

/** Features without repetitions, in the order of their numbers. */
export function distinct(features: readonly Feature[]): Feature[] {
  return [...new Set(features)].sort((one, other) => one - other);
}

/** The call that changes a partner's limits. A higher limit of money needs a second operator. */
export function limitsCall(
  changed: (partnerId: string) => void,
): GuardedCall<typeof SetLimitsRequestSchema, StoredPartner, boolean> {
  return {
    name: 'Partners.SetLimits',
    schema: SetLimitsRequestSchema,
    asked({ partnerId, ...request }) {
      const limits = limitsIn(request.limits);
      const setBack = request.setBack.flatMap((limit) => agreedLimits[limit] ?? []);
      if (Object.keys(limits).length + setBack.length === 0) {
        throw invalidField('limits', 'must name at least one limit.');
      }
      const both = setBack.findIndex((limit) => limits[limit] !== undefined);
      if (both >= 0) throw invalidField(`set_back[${both}]`, 'must not be a limit that is also given.');
      return partnerWork(partnerId, 'limits', changed, (partner) => {
        const before = limitsIn(partner);
        const after = limitsIn({ ...before, ...limits, ...Object.fromEntries(setBack.map((name) => [name, null])) });
        if (limitNames.every((name) => before[name] === after[name])) return { unchanged: false };
        return {
          needsSecond: raisedLimits(before, after).length > 0,
          seen: shownLimits(before),
          apply: () => ({
            writes: [saveLimits(partnerId, after)],
            entry: { partnerId, detail: { limits, setBack }, before, after },
            after: shownLimits(after),
            result: true,
          }),
        };
      });
    },
  };
}

/** The call that changes a partner's features. Enabling withdrawals needs a second operator. */
export function featuresCall(
  changed: (partnerId: string) => void,
): GuardedCall<typeof SetFeaturesRequestSchema, StoredPartner, boolean> {
  return {
    name: 'Partners.SetFeatures',
    schema: SetFeaturesRequestSchema,
    asked({ partnerId, features: wanted }) {
      return partnerWork(partnerId, 'features', changed, (partner) => {
        const features = changedFeatureList(distinct(wanted), partner);
        if (partner.features === features) return { unchanged: false };
        const [before, after] = [{ features: partner.features }, { features }];
        return {
          needsSecond: opensWithdrawals(toFeatures(partner), wanted),
          seen: before,
          apply: () => ({
            writes: [partners.set({ id: partnerId }, { features })],
            entry: { partnerId, detail: {}, before, after },
            after,
            result: true,
          }),
        };
      });
    },
  };
}

/** A change of a partner's row. `changed` notifies all replicas, also if the outcome is unknown. */
function partnerWork(
  partnerId: string,
  about: string,
  changed: (partnerId: string) => void,
  decide: (partner: StoredPartner) => GuardedChange<boolean>,
): GuardedWork<StoredPartner, boolean> {
  return {
    ...{ partnerId, objectId: partnerId, about, touches: 'partner' },
    // The lock reads only what orders need.
    fact: queryFact(partners.find({ id: partnerId }), ([row = {}]) => partners.all.read(row)),
    decide,
    ended: () => changed(partnerId),
  };
}

/** The rights to move money that are agreed with a partner. */
export interface Rights {
  readonly limits: AgreedLimits;
  readonly features: readonly Feature[];
}

/** The rights that a partner may be created with by one operator, and the proposals of the others. */
export function rightsOfNew(
  parts: FourEyesParts,
  { partnerId, limits, features, reason }: Rights & { readonly partnerId: string; readonly reason: string },
  calls: { readonly limits: ReturnType<typeof limitsCall>; readonly features: ReturnType<typeof featuresCall> },
  by: AuditedBy,
  now: number,
) {
  if (parts.fourEyesAboveKobo === undefined) return { agreed: { limits, features }, proposed: [] };
  const raised = raisedLimits({}, limits);
  const opens = opensWithdrawals(new Set(), features);
  const agreed: Rights = {
    limits: Object.fromEntries(Object.entries(limits).filter(([name]) => !raised.some((one) => one === name))),
    features: features.filter((feature) => feature !== Feature.WITHDRAWALS),
  };
  const higher = Object.fromEntries(raised.map((name) => [name, limits[name]]));
  const asked = {
    limits: create(SetLimitsRequestSchema, { partnerId, limits: higher, reason }),
    features: create(SetFeaturesRequestSchema, { partnerId, features: [...features], reason }),
  };
  const seen = { limits: shownLimits(agreed.limits), features: { features: featureList(agreed.features) } };
  const proposed = [
    ...(raised.length > 0 ? [proposedWith(parts, calls.limits, asked.limits, seen.limits, by, now)] : []),
    ...(opens ? [proposedWith(parts, calls.features, asked.features, seen.features, by, now)] : []),
  ];
  return { agreed, proposed };
}

/** The limits in force as a proposal shows them, by the names of the proto. */
function shownLimits(agreed: AgreedLimits) {
  const limits = { ...defaultLimits, ...agreed };
  return {
    requests_per_second: String(limits.requestsPerSecond),
    requests_burst: String(limits.requestsBurst),
    requests_under_way: String(limits.requestsUnderWay),
    orders_kobo_per_day: String(limits.ordersKoboPerDay),
    allocations_kobo_per_day: String(limits.allocationsKoboPerDay),
  };
}
