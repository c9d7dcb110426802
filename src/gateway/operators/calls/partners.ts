import { status } from '@grpc/grpc-js';
import { PartnerState, Partners } from '../../../gen/marina/admin/v1/partners_pb.ts';
import {
  apiKeys,
  defaultLimits,
  featureList,
  insertPartner,
  partners,
  type StoredPartner,
  toFeatures,
} from '../../edge/auth/store.ts';
import type { Database } from '../../store/database.ts';
import { queryFact } from '../../store/facts.ts';
import type { Statement } from '../../store/statement.ts';
import type { RowOf } from '../../store/table.ts';
import { accounts, type StoredAccount } from '../../trading/accounts/store.ts';
import { audit } from './audit.ts';
import { type AdminCall, adminService, changeOwned, listed } from './call.ts';
import { AdminError } from './errors.ts';
import { distinct, featuresCall, limitsCall, limitsIn, rightsOfNew } from './partner-rights.ts';
import { approvedCall, askFor, type FourEyesParts } from './proposals/four-eyes.ts';

/** How many partners a search by name reads at once. There are hundreds to some thousands of partners. */
const maxNamesRead = 500;

/** A state of another version is not among them. */
const partnerStates: ReadonlyMap<string, PartnerState> = new Map([
  ['active', PartnerState.ACTIVE],
  ['suspended', PartnerState.SUSPENDED],
]);

/**
 * The operators' calls on partners, and what approving their proposals does. `changed` notifies all replicas that a partner's
 * agreement has changed.
 */
export function partnerService(parts: FourEyesParts, changed: (partnerId: string) => void) {
  const { database, clock, ids } = parts;
  const [limits, features] = [limitsCall(changed), featuresCall(changed)];

  const service = adminService(Partners, {
    async createPartner({ name, reason, ...request }, call) {
      const partnerId = ids.object('par');
      const createdAt = clock.now();
      const wanted = { partnerId, limits: limitsIn(request.limits), features: distinct(request.features), reason };
      const { agreed, proposed } = rightsOfNew(parts, wanted, { limits, features }, call, createdAt);
      const after = { name, state: 'active', limits: agreed.limits, features: featureList(agreed.features) };
      const writes = [
        insertPartner({ id: partnerId, name, ...agreed, createdAt }),
        audit(call, createdAt, { partnerId, detail: { reason }, after }),
        ...proposed.flatMap((one) => one.writes),
      ];
      await database.transaction([], () => ({ writes, result: undefined }));
      const proposals = proposed.map(({ proposal }) => proposal);
      return { partner: toMessage(await find(partnerId)), proposals };
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

    async listPartners({ limit, afterPartnerId, nameContains }) {
      const { rows, hasMore } = await listed(limit, (most) => named(database, nameContains, afterPartnerId, most));
      return { partners: rows.map(toMessage), hasMore };
    },

    suspendPartner: (request, call) => setState('suspended', request, call),
    resumePartner: (request, call) => setState('active', request, call),

    async setLimits(request, call) {
      const { result = false, proposal } = await askFor(parts, limits, request, call);
      return { changed: result, partner: toMessage(await find(request.partnerId)), proposal };
    },

    async setFeatures(request, call) {
      const { result = false, proposal } = await askFor(parts, features, request, call);
      return { changed: result, partner: toMessage(await find(request.partnerId)), proposal };
    },
  });
  return { service, actions: [approvedCall(parts, limits), approvedCall(parts, features)] };

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

/** The partners after one whose names contain a text, in any case. It reads one page of partners after the other. */
async function named(database: Database, text: string, afterId: string, most: number): Promise<StoredPartner[]> {
  const { MoreThan } = await import('typeorm');
  const take = text === '' ? most : maxNamesRead;
  const found: StoredPartner[] = [];
  for (let after = afterId; ; ) {
    const where = { id: MoreThan(after) };
    const rows = await database.manage((manager) =>
      manager.find<StoredPartner>(partners.name, { where, order: { id: 'ASC' }, take }),
    );
    found.push(...rows.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())));
    const last = rows.at(-1);
    if (found.length >= most || last === undefined || rows.length < take) return found.slice(0, most);
    after = last.id;
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
