import { status } from '@grpc/grpc-js';
import { AgreedLimit, PartnerState, Partners } from '../../../gen/marina/admin/v1/partners_pb.ts';
import type { Feature } from '../../../gen/marina/options/v1/options_pb.ts';
import type { PartnerLimits } from '../../edge/auth/caller.ts';
import {
  apiKeys,
  changedFeatureList,
  defaultLimits,
  featureList,
  insertPartner,
  partners,
  type StoredPartner,
  saveLimits,
  toFeatures,
} from '../../edge/auth/store.ts';
import { queryFact } from '../../store/facts.ts';
import type { Statement } from '../../store/statement.ts';
import type { RowOf } from '../../store/table.ts';
import { accounts, type StoredAccount } from '../../trading/accounts/store.ts';
import { audit } from './audit.ts';
import { type AdminCall, type AdminParts, adminService, changeOwned, listed } from './call.ts';
import { AdminError, invalidField } from './errors.ts';

/** The limits by the numbers of the proto. */
const agreedLimits: Partial<Record<AgreedLimit, keyof PartnerLimits>> = {
  [AgreedLimit.REQUESTS_PER_SECOND]: 'requestsPerSecond',
  [AgreedLimit.REQUESTS_BURST]: 'requestsBurst',
  [AgreedLimit.REQUESTS_UNDER_WAY]: 'requestsUnderWay',
  [AgreedLimit.ORDERS_KOBO_PER_DAY]: 'ordersKoboPerDay',
  [AgreedLimit.ALLOCATIONS_KOBO_PER_DAY]: 'allocationsKoboPerDay',
};
const limitNames = Object.values(agreedLimits);

/** A state of another version is not among them. */
const partnerStates: ReadonlyMap<string, PartnerState> = new Map([
  ['active', PartnerState.ACTIVE],
  ['suspended', PartnerState.SUSPENDED],
]);

/** The operators' calls on partners. `changed` notifies all replicas that a partner's agreement has changed. */
export function partnerService({ database, clock, ids }: AdminParts, changed: (partnerId: string) => void) {
  return adminService(Partners, {
    async createPartner({ name, reason, ...request }, call) {
      const partnerId = ids.object('par');
      const createdAt = clock.now();
      const limits = limitsIn(request.limits);
      const features = distinct(request.features);
      const after = { name, state: 'active', limits, features: featureList(features) };
      const writes = [
        insertPartner({ id: partnerId, name, limits, features, createdAt }),
        audit(call, createdAt, { partnerId, detail: { reason }, after }),
      ];
      await database.transaction([], () => ({ writes, result: undefined }));
      return { partner: toMessage(await find(partnerId)) };
    },

    async getPartner({ partnerId }) {
      const partner = await find(partnerId);
      const { IsNull } = await import('typeorm');
      return database.manage(async (manager) => ({
        partner: toMessage(partner),
        activeKeys: await manager.countBy<RowOf<typeof apiKeys>>(apiKeys.name, { partnerId, revokedAt: IsNull() }),
        accounts: await manager.countBy<StoredAccount>(accounts.name, { partnerId }),
      }));
    },

    async listPartners({ limit, afterPartnerId }) {
      const { MoreThan } = await import('typeorm');
      const where = { id: MoreThan(afterPartnerId) };
      const { rows, hasMore } = await listed(limit, (take) =>
        database.manage((manager) => manager.find<StoredPartner>(partners.name, { where, order: { id: 'ASC' }, take })),
      );
      return { partners: rows.map(toMessage), hasMore };
    },

    suspendPartner: (request, call) => setState('suspended', request, call),
    resumePartner: (request, call) => setState('active', request, call),

    async setLimits({ partnerId, reason, ...request }, call) {
      const limits = limitsIn(request.limits);
      const setBack = request.setBack.flatMap((limit) => agreedLimits[limit] ?? []);
      if (Object.keys(limits).length + setBack.length === 0) {
        throw invalidField('limits', 'must name at least one limit.');
      }
      const both = setBack.findIndex((limit) => limits[limit] !== undefined);
      if (both >= 0) throw invalidField(`set_back[${both}]`, 'must not be a limit that is also given.');
      const isChanged = await change(partnerId, (partner) => {
        const before = limitsIn(partner);
        const after = limitsIn({ ...before, ...limits, ...Object.fromEntries(setBack.map((name) => [name, null])) });
        if (limitNames.every((name) => before[name] === after[name])) return [];
        const entry = { partnerId, detail: { limits, setBack, reason }, before, after };
        return [saveLimits(partnerId, after), audit(call, clock.now(), entry)];
      });
      return { changed: isChanged, partner: toMessage(await find(partnerId)) };
    },

    async setFeatures({ partnerId, reason, features: wanted }, call) {
      const isChanged = await change(partnerId, (partner) => {
        const features = changedFeatureList(distinct(wanted), partner);
        if (partner.features === features) return [];
        const entry = { partnerId, detail: { reason }, before: { features: partner.features }, after: { features } };
        return [partners.set({ id: partnerId }, { features }), audit(call, clock.now(), entry)];
      });
      return { changed: isChanged, partner: toMessage(await find(partnerId)) };
    },
  });

  async function setState(
    state: 'active' | 'suspended',
    { partnerId, reason }: { readonly partnerId: string; readonly reason: string },
    call: AdminCall,
  ) {
    const isChanged = await change(partnerId, (partner) => {
      if (partner.state === state) return [];
      // Suspending is always safe. A partner in a state of another version must not be opened by mistake.
      if (state === 'active' && partner.state !== 'suspended') {
        throw new AdminError(
          status.FAILED_PRECONDITION,
          'another version of the gateway stored a state this one does not know: call a replica of that version',
        );
      }
      const entry = { partnerId, detail: { reason }, before: { state: partner.state }, after: { state } };
      return [partners.set({ id: partnerId }, { state }), audit(call, clock.now(), entry)];
    });
    return { changed: isChanged };
  }

  function change(partnerId: string, decide: (partner: StoredPartner) => Statement[]): Promise<boolean> {
    // The lock reads only what orders need.
    const fact = queryFact(partners.find({ id: partnerId }), ([row = {}]) => partners.all.read(row));
    return changeOwned(database, partnerId, 'partner', fact, decide, () => changed(partnerId));
  }

  async function find(id: string): Promise<StoredPartner> {
    const [row] = await database.read(partners.find({ id }));
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such partner');
    return partners.all.read(row);
  }
}

function toMessage(partner: StoredPartner) {
  const agreedLimits = limitsIn(partner);
  return {
    ...partner,
    state: partnerStates.get(partner.state) ?? PartnerState.UNSPECIFIED,
    limits: { ...defaultLimits, ...agreedLimits },
    agreedLimits,
    features: [...toFeatures(partner)],
    lastVersion: partner.version,
  };
}

/** The limits that a request or a partner's row has. */
function limitsIn(from: { readonly [Name in keyof PartnerLimits]?: PartnerLimits[Name] | null } = {}) {
  const given = limitNames.flatMap((name) => (from[name] == null ? [] : [[name, from[name]]]));
  return Object.fromEntries(given) as Partial<PartnerLimits>;
}

function distinct(features: readonly Feature[]): Feature[] {
  return [...new Set(features)].sort((one, other) => one - other);
}
