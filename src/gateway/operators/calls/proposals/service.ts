import { status } from '@grpc/grpc-js';
import { type ProposalState, ProposalStateSchema, Proposals } from '../../../../gen/marina/admin/v1/proposals_pb.ts';
import { enumWords } from '../../../../kit/enums.ts';
import { groupBy } from '../../../../kit/group.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { queryFact } from '../../../store/facts.ts';
import { type SqlRow, type Statement, statement } from '../../../store/statement.ts';
import type { Kinds } from '../../../trading/submission/kind.ts';
import { audit } from '../audit.ts';
import { type AdminCall, type AdminParts, adminService, usuallyListed } from '../call.ts';
import { AdminError } from '../errors.ts';
import { forbidsApproval, type Seen, stateOf } from './rules.ts';
import {
  listProposals,
  type OpenProposal,
  openProposal,
  openProposalsOf,
  proposalById,
  proposals,
  type StoredProposal,
} from './table.ts';

/** What approving a proposal does. */
export interface Approval {
  readonly proposal: StoredProposal;
  /** The call that approves it. */
  readonly call: AdminCall;
  /** Whether to apply it, by its row under the partner's lock; false: it was applied before. Throws if it may not be approved. */
  mayApply(proposal: StoredProposal): boolean;
  /** What records the approval, to be written together with what it changes: the object before and after. */
  record(proposal: StoredProposal, before: Seen, after: Seen): readonly Statement[];
}

/** A kind of proposals. */
export interface ProposedAction {
  /** The call that proposes it, as service and method. */
  readonly name: string;
  /** Applies a proposal once, in one transaction with its approval. Answers the state of the object then. */
  apply(approval: Approval): Promise<{ readonly changed: boolean; readonly objectState: string }>;
}

const states = enumWords<typeof ProposalState>(ProposalStateSchema);

/** The operators' calls that decide proposals. `mayApproveOwn`: an operator may approve his own ones. */
export function proposalService(
  { database, clock }: AdminParts,
  cursors: Cursors,
  kinds: Kinds,
  actions: readonly ProposedAction[],
  mayApproveOwn: boolean,
) {
  const read = (id: string) => readProposal(database, id);
  const toMessage = (row: StoredProposal) => toProposal(row, clock.now());

  return adminService(Proposals, {
    async listProposals({ state, objectId, id, limit, cursor }) {
      const most = limit || usuallyListed;
      if (id !== '') {
        const found = (await database.read(proposalById(id))).map(proposals.all.read);
        const isWanted = (row: StoredProposal) => {
          const isOfState = state === 0 || states.find(state) === stateOf(row, clock.now());
          return isOfState && (objectId === '' || row.objectId === objectId);
        };
        return { proposals: found.filter(isWanted).map(toMessage), nextCursor: undefined };
      }
      const issuedFor = ['proposals', String(state), objectId];
      const before = cursor === '' ? undefined : cursors.read(issuedFor, cursor);
      const object = objectId === '' ? undefined : await findObject(database, kinds, objectId);
      if (object === undefined && objectId !== '') return { proposals: [], nextCursor: undefined };
      const wanted = { state: states.find(state), object, before };
      const rows = await database.read(listProposals(wanted, clock.now(), most + 1));
      const page = cursors.page(issuedFor, rows.map(proposals.all.read), most, (row) => row.id);
      return { proposals: page.data.map(toMessage), nextCursor: page.nextCursor };
    },

    async approveProposal({ id, reason }, call) {
      const proposal = await read(id);
      call.requireRoleFor(proposal.action, 'to approve this proposal');
      const action = actions.find(({ name }) => name === proposal.action);
      if (action === undefined) {
        throw new AdminError(status.FAILED_PRECONDITION, 'another version proposed it: call a replica of that version');
      }
      const mayApply = (row: StoredProposal) => {
        if (row.state === 'applied') return false;
        const forbidden = forbidsApproval(row, call.operator, mayApproveOwn, clock.now());
        if (forbidden === 'own') {
          throw new AdminError(status.PERMISSION_DENIED, 'another operator than its proposer must approve it');
        }
        if (forbidden === 'not-open') {
          throw new AdminError(status.FAILED_PRECONDITION, `the proposal is ${stateOf(row, clock.now())}`);
        }
        return true;
      };
      const { changed, objectState } = await action.apply({
        ...{ proposal, call, mayApply },
        record: (row, before, after) => decide(call, row, 'applied', reason, clock.now(), { before, after }),
      });
      return { proposal: toMessage(await read(id)), changed, objectState };
    },

    async declineProposal({ id, reason }, call) {
      const { partnerId, action } = await read(id);
      call.requireRoleFor(action, 'to decline this proposal');
      const changed = await database.inPartnerTransaction(partnerId, {
        touches: [id],
        fact: queryFact(proposals.find({ partnerId, id }), ([row]) => row && proposals.all.read(row)),
        decide: (row) => {
          if (row === undefined) throw new Error(`${id} is not stored`);
          const now = clock.now();
          const state = stateOf(row, now);
          if (state === 'declined') return { writes: [], result: false };
          if (state !== 'open') throw new AdminError(status.FAILED_PRECONDITION, `the proposal is ${state}`);
          return { writes: decide(call, row, 'declined', reason, now), result: true };
        },
      });
      return { proposal: toMessage(await read(id)), changed };
    },
  });

  /** Stores an operator's decision, and its audit entry with both operators and the evidence. */
  function decide(
    call: AdminCall,
    row: StoredProposal,
    state: 'applied' | 'declined',
    reason: string,
    now: number,
    object: { readonly before?: Seen; readonly after?: Seen } = {},
  ): Statement[] {
    const { partnerId, id, objectId, action, request, evidence, reference, proposedBy } = row;
    const detail = {
      ...{
        proposal: id,
        action,
        request: JSON.parse(request) as unknown,
        evidence,
        reference,
        proposed_by: proposedBy,
      },
      ...{ reason, [state === 'applied' ? 'approved_by' : 'declined_by']: call.operator },
    };
    const decision = { state, decidedBy: call.operator, decidedAt: now, decisionReason: reason || null };
    return [
      ...proposals.update(row, { ...row, ...decision }),
      audit(call, now, { partnerId, subject: objectId, detail, ...object }),
    ];
  }
}

/** A proposal as operators see it. `now` is business time. */
export function toProposal(row: StoredProposal, now: number) {
  return { ...row, state: stateOf(row, now) };
}

/** Reads in a transaction, which a proxy that splits reads and writes sends to the server that takes writes. */
function readAtWriter(database: Database, query: Statement): Promise<readonly SqlRow[]> {
  return database.transaction([query], ([rows = []]) => ({ writes: [], result: rows }));
}

/** A proposal as it is now. A read could come from a server that lags and does not have it, or its decision, yet. */
export async function readProposal(database: Database, id: string): Promise<StoredProposal> {
  const [row] = await readAtWriter(database, proposalById(id));
  if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such proposal');
  return proposals.all.read(row);
}

/** The partner of an object; undefined if there is no such object. A partner is its own, and is not looked up. */
export async function findObject(database: Database, kinds: Kinds, objectId: string) {
  if (objectId.startsWith('par_')) return { partnerId: objectId, objectId };
  const table = objectId.startsWith('key_') ? 'api_keys' : kinds.ofId(objectId)?.table.name;
  const find = table === undefined ? undefined : statement(`SELECT partner_id FROM ${table} WHERE id = ?`, objectId);
  const [row] = find === undefined ? [] : await readAtWriter(database, find);
  return row && { partnerId: String(row.partner_id), objectId };
}

/** The open proposals about some objects, in short, by the objects' ids. `now` is business time. */
export async function readOpenProposals(
  database: Database,
  objects: readonly { readonly partnerId: string; readonly id: string }[],
  now: number,
): Promise<ReadonlyMap<string, OpenProposal>> {
  const ofPartners = [...groupBy(objects, ({ partnerId }) => partnerId)];
  const ids = (some: readonly { readonly id: string }[]) => [...new Set(some.map(({ id }) => id))];
  const rows = await database.readAll(
    ofPartners.map(([partnerId, some]) => openProposalsOf(partnerId, ids(some), now)),
  );
  return new Map(
    rows
      .flat()
      .map(openProposal.read)
      .map((row) => [row.objectId, row]),
  );
}
