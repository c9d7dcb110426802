import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { MoreThan } from 'typeorm';
import type { PartnerLimits } from '../auth/call.ts';
import {
  changedFeatureList,
  defaultLimits,
  featureList,
  insertPartner,
  partners,
  type StoredPartner,
  saveLimits,
  toAgreedLimits,
  toFeatures,
} from '../auth/store.ts';
import type { Database } from '../db/database.ts';
import { reading } from '../db/facts.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import {
  AgreedLimit,
  type CreatePartnerRequest,
  type CreatePartnerResponse,
  CreatePartnerResponseSchema,
  type GetPartnerRequest,
  type GetPartnerResponse,
  GetPartnerResponseSchema,
  type PartnerLimits as LimitsMessage,
  type ListPartnersRequest,
  type ListPartnersResponse,
  ListPartnersResponseSchema,
  type Partner,
  PartnerLimitsSchema,
  PartnerSchema,
  PartnerState,
  type ResumePartnerRequest,
  type ResumePartnerResponse,
  ResumePartnerResponseSchema,
  type SetFeaturesRequest,
  type SetFeaturesResponse,
  SetFeaturesResponseSchema,
  type SetLimitsRequest,
  type SetLimitsResponse,
  SetLimitsResponseSchema,
  type SuspendPartnerRequest,
  type SuspendPartnerResponse,
  SuspendPartnerResponseSchema,
} from '../gen/marina/admin/v1/partners_pb.ts';
import type { Feature } from '../gen/marina/options/v1/options_pb.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdMaker } from '../lib/ids.ts';
import { audit } from './audit.ts';
import { AdminError, invalidField, type Operator, pageSize } from './call.ts';

export interface PartnerAdminParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  /** Tells this replica and the others that what was agreed with a partner has changed. */
  readonly changed: (partnerId: string) => void;
}

/** Which limit each name of the proto stands for. */
const agreedLimits: Partial<Record<AgreedLimit, keyof PartnerLimits>> = {
  [AgreedLimit.REQUESTS_PER_SECOND]: 'requestsPerSecond',
  [AgreedLimit.REQUESTS_BURST]: 'requestsBurst',
  [AgreedLimit.REQUESTS_UNDER_WAY]: 'requestsUnderWay',
  [AgreedLimit.ORDERS_KOBO_PER_DAY]: 'ordersKoboPerDay',
  [AgreedLimit.ALLOCATIONS_KOBO_PER_DAY]: 'allocationsKoboPerDay',
};

/** A state of another version is not among them. */
const partnerStates: ReadonlyMap<string, PartnerState> = new Map([
  ['active', PartnerState.ACTIVE],
  ['suspended', PartnerState.SUSPENDED],
]);

/** The operators' calls on partners. Each change is written down in the transaction that makes it. */
export function partnerAdminHandlers({ database, clock, ids, changed }: PartnerAdminParts) {
  async function createPartner(request: CreatePartnerRequest, operator: Operator): Promise<CreatePartnerResponse> {
    const { name, reason } = request;
    const id = ids.object('par');
    const createdAt = clock.now();
    const limits = request.limits === undefined ? {} : given(request.limits);
    const features = distinct(request.features);
    const after = { name, state: 'active', limits, features: featureList(features) };
    await database.transaction([], () => ({
      writes: [
        insertPartner({ id, name, limits, features, createdAt }),
        audit({ ...entry('CreatePartner', id, operator, createdAt), detail: { reason }, after }),
      ],
      result: undefined,
    }));
    return create(CreatePartnerResponseSchema, { partner: toMessage(await find(id)) });
  }

  async function getPartner({ partnerId }: GetPartnerRequest): Promise<GetPartnerResponse> {
    const [row] = await database.read(readPartner(partnerId));
    if (row === undefined) throw noPartner();
    return create(GetPartnerResponseSchema, {
      partner: toMessage(partners.all.read(row)),
      activeKeys: Number(row.active_keys),
      accounts: toBigInt(row.accounts),
    });
  }

  async function listPartners(request: ListPartnersRequest): Promise<ListPartnersResponse> {
    const limit = pageSize(request.limit);
    const rows = await database.manage((manager) =>
      manager.getRepository(partners.schema).find({
        ...{ where: { id: MoreThan(request.afterPartnerId) }, order: { id: 'ASC' as const }, take: limit + 1 },
      }),
    );
    return create(ListPartnersResponseSchema, {
      partners: rows.slice(0, limit).map(toMessage),
      hasMore: rows.length > limit,
    });
  }

  async function suspendPartner(request: SuspendPartnerRequest, operator: Operator): Promise<SuspendPartnerResponse> {
    return create(SuspendPartnerResponseSchema, {
      changed: await setState('SuspendPartner', 'suspended', request, operator),
    });
  }

  async function resumePartner(request: ResumePartnerRequest, operator: Operator): Promise<ResumePartnerResponse> {
    return create(ResumePartnerResponseSchema, {
      changed: await setState('ResumePartner', 'active', request, operator),
    });
  }

  function setState(
    action: string,
    state: 'active' | 'suspended',
    { partnerId, reason }: { partnerId: string; reason: string },
    operator: Operator,
  ): Promise<boolean> {
    return change(partnerId, (partner) => {
      if (partner.state === state) return [];
      // To suspend is safe whatever it means; what another version closed is not opened by mistake.
      if (state === 'active' && partner.state !== 'suspended') {
        throw new AdminError(
          status.FAILED_PRECONDITION,
          'another version of the gateway stored a state this one does not know: call a replica of that version',
        );
      }
      return [
        partners.set({ id: partnerId }, { state }),
        audit({
          ...entry(action, partnerId, operator, clock.now()),
          detail: { reason },
          before: { state: partner.state },
          after: { state },
        }),
      ];
    });
  }

  async function setLimits(request: SetLimitsRequest, operator: Operator): Promise<SetLimitsResponse> {
    const { partnerId, reason } = request;
    const wanted = request.limits === undefined ? {} : given(request.limits);
    const setBack = request.setBack.flatMap((limit) => agreedLimits[limit] ?? []);
    if (Object.keys(wanted).length + setBack.length === 0)
      throw invalidField('limits', 'must name at least one limit.');
    const both = setBack.findIndex((limit) => wanted[limit] !== undefined);
    if (both >= 0) throw invalidField(`set_back[${both}]`, 'must not be a limit that is also given.');
    const isChanged = await change(partnerId, (partner) => {
      const before = defined(toAgreedLimits(partner));
      const after = defined({ ...before, ...wanted, ...Object.fromEntries(setBack.map((name) => [name, undefined])) });
      if (isSame(before, after)) return [];
      const said = audit({
        ...entry('SetLimits', partnerId, operator, clock.now()),
        detail: { limits: wanted, setBack, reason },
        before,
        after,
      });
      return [saveLimits(partnerId, after), said];
    });
    return create(SetLimitsResponseSchema, { changed: isChanged, partner: toMessage(await find(partnerId)) });
  }

  async function setFeatures(request: SetFeaturesRequest, operator: Operator): Promise<SetFeaturesResponse> {
    const { partnerId, reason } = request;
    const wanted = distinct(request.features);
    const isChanged = await change(partnerId, (partner) => {
      const features = changedFeatureList(wanted, partner);
      if (partner.features === features) return [];
      return [
        partners.set({ id: partnerId }, { features }),
        audit({
          ...entry('SetFeatures', partnerId, operator, clock.now()),
          detail: { reason },
          before: { features: partner.features },
          after: { features },
        }),
      ];
    });
    return create(SetFeaturesResponseSchema, { changed: isChanged, partner: toMessage(await find(partnerId)) });
  }

  /** Changes a partner under its lock, and tells all replicas, also when whether it was changed is unknown. */
  async function change(partnerId: string, decide: (partner: StoredPartner) => readonly Statement[]): Promise<boolean> {
    await find(partnerId);
    try {
      return await database.inPartner(partnerId, {
        touches: ['partner'],
        // The lock reads only what orders need.
        fact: reading(partners.find({ id: partnerId })),
        decide: ([rows]) => {
          const row = rows?.[0];
          if (row === undefined) throw noPartner();
          const writes = decide(partners.all.read(row));
          return { writes, result: writes.length > 0 };
        },
      });
    } finally {
      changed(partnerId);
    }
  }

  async function find(id: string): Promise<StoredPartner> {
    const partner = await database.manage((manager) => manager.getRepository(partners.schema).findOneBy({ id }));
    if (partner === null) throw noPartner();
    return partner;
  }

  return { createPartner, getPartner, listPartners, suspendPartner, resumePartner, setLimits, setFeatures };
}

function readPartner(partnerId: string): Statement {
  return statement(
    `SELECT p.*,
      (SELECT COUNT(*) FROM api_keys k WHERE k.partner_id = p.id AND k.revoked_at IS NULL) AS active_keys,
      (SELECT COUNT(*) FROM accounts a WHERE a.partner_id = p.id) AS accounts
      FROM partners p WHERE p.id = ?`,
    partnerId,
  );
}

function entry(action: string, partnerId: string, operator: Operator, at: number) {
  return { at, operator, action: `Partners.${action}`, partnerId, subject: partnerId };
}

function toMessage(partner: StoredPartner): Partner {
  const { id, name, state, createdAt, version } = partner;
  return create(PartnerSchema, {
    id,
    name,
    state: partnerStates.get(state) ?? PartnerState.UNSPECIFIED,
    limits: create(PartnerLimitsSchema, { ...defaultLimits, ...defined(toAgreedLimits(partner)) }),
    agreedLimits: create(PartnerLimitsSchema, toAgreedLimits(partner)),
    features: [...toFeatures(partner)],
    createdAt: timestampFromMs(createdAt),
    lastVersion: version,
  });
}

/** The values a request gives. */
function given(limits: LimitsMessage): Partial<PartnerLimits> {
  const { requestsPerSecond, requestsBurst, requestsUnderWay, ordersKoboPerDay, allocationsKoboPerDay } = limits;
  return defined({ requestsPerSecond, requestsBurst, requestsUnderWay, ordersKoboPerDay, allocationsKoboPerDay });
}

function defined(limits: Partial<PartnerLimits>): Partial<PartnerLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

function isSame(one: Partial<PartnerLimits>, other: Partial<PartnerLimits>): boolean {
  return Object.values(agreedLimits).every((name) => one[name] === other[name]);
}

function distinct(features: readonly Feature[]): Feature[] {
  return [...new Set(features)].sort((one, other) => one - other);
}

function noPartner(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such partner');
}
