import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { proposalExpiry } from '../../../../../src/gateway/operators/calls/proposals/expiry.ts';
import { proposalLifeMs } from '../../../../../src/gateway/operators/calls/proposals/rules.ts';
import {
  listProposals,
  proposals,
  type StoredProposal,
} from '../../../../../src/gateway/operators/calls/proposals/table.ts';
import { readBacklog } from '../../../../../src/gateway/operators/telemetry/backlog.ts';
import type { Database } from '../../../../../src/gateway/store/database.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { startWorker } from '../../../../support/database.ts';
import { eventually } from '../../../../support/eventually.ts';
import { openSettling, type Settling } from '../../../../support/settling.ts';

const dayMs = 86_400_000;

describe('proposals that nobody decides', () => {
  let settling: Settling;
  /** With the rights that a gateway has. */
  let gateways: Database;
  let partnerId: string;
  let logged: Record<string, unknown>[];
  let stop: () => Promise<void> = async () => {};
  before(async () => {
    settling = await openSettling();
    gateways = await settling.openAsGateway();
    partnerId = await settling.newPartner();
  });
  after(() => settling.close());
  beforeEach(async () => {
    logged = [];
    for (const table of ['proposals', 'audit_entries'])
      await settling.database.write(statement(`DELETE FROM ${table}`));
  });
  afterEach(() => stop());

  /** Stores a proposal as it is made now. */
  async function propose(id: string, fields: Partial<StoredProposal> = {}): Promise<void> {
    const now = settling.clock.now();
    const texts = { request: '{}', seen: '{}', evidence: 'a mail', reference: 'T-1', proposedBy: 'ada' };
    const times = { proposedAt: now, expiresAt: now + proposalLifeMs };
    const undecided = { about: null, decidedBy: null, decidedAt: null, decisionReason: null };
    const action = 'Settlements.ProposeSettlement';
    await settling.database.write(
      proposals.insert({
        ...{ partnerId, id, action, objectId: `ord_${id}`, state: 'open' },
        ...{ ...texts, ...times, ...undecided, ...fields },
      }),
    );
  }

  async function states(): Promise<Record<string, string>> {
    const rows = await settling.database.read(statement('SELECT id, state FROM proposals ORDER BY id'));
    return Object.fromEntries(rows.map(({ id, state }) => [String(id), String(state)]));
  }

  function run(): void {
    const { clock } = settling;
    const destination = { write: (line: string) => void logged.push(JSON.parse(line)) };
    const log = createLogger({ name: 'test', level: 'warn', destination });
    stop = startWorker(proposalExpiry(gateways, async () => clock.now(), 'test', log));
  }

  it('are stored as expired from the instant on at which they expire, and decided ones stay as they are', async () => {
    const partner = partnerId;
    await propose('prp_1');
    await propose('prp_2', { state: 'applied', decidedBy: 'bola' });
    await propose('prp_3', { state: 'declined', decidedBy: 'bola' });
    partnerId = await settling.newPartner();
    await propose('prp_4');
    partnerId = partner;
    settling.clock.advanceBusiness(1);
    await propose('prp_5');
    settling.clock.advanceBusiness(proposalLifeMs - 1);
    run();
    const expected = { prp_1: 'expired', prp_2: 'applied', prp_3: 'declined', prp_4: 'expired', prp_5: 'open' };
    await eventually(async () => assert.deepEqual(await states(), expected));
  });

  it('are in the audit and the log once each when they expire', async () => {
    for (const id of ['prp_1', 'prp_2']) await propose(id);
    settling.clock.advanceBusiness(proposalLifeMs);
    run();
    await eventually(async () => assert.deepEqual(await states(), { prp_1: 'expired', prp_2: 'expired' }));
    await stop();
    run();
    await stop();
    const entries = await settling.database.read(
      statement('SELECT partner_id, operator, action, subject, detail FROM audit_entries ORDER BY id'),
    );
    const detail = (id: string) => ({ proposal: id, action: 'Settlements.ProposeSettlement', proposedBy: 'ada' });
    assert.deepEqual(
      entries.map((entry) => ({ ...entry, detail: JSON.parse(String(entry.detail)) })),
      ['prp_1', 'prp_2'].map((id) => ({
        ...{ partner_id: partnerId, operator: 'marina', action: 'gateway.ExpireProposal' },
        ...{ subject: `ord_${id}`, detail: detail(id) },
      })),
    );
    assert.deepEqual(
      logged.map(({ msg, proposal }) => [msg, proposal]),
      ['prp_1', 'prp_2'].map((id) => ['a proposal expired, because nobody decided it', id]),
    );
  });

  it('are listed as expired in one order, before and after that is stored', async () => {
    const { clock, database } = settling;
    for (const id of ['prp_1', 'prp_2', 'prp_3', 'prp_4']) await propose(id);
    await propose('prp_5', { state: 'declined' });
    clock.advanceBusiness(proposalLifeMs);
    await propose('prp_6');
    await database.write(statement("UPDATE proposals SET state = 'expired' WHERE id IN ('prp_2', 'prp_4')"));
    const list = async (before: string | undefined, most: number, object?: string) => {
      const only = object === undefined ? undefined : { partnerId, objectId: object };
      const rows = await database.read(listProposals({ state: 'expired', object: only, before }, clock.now(), most));
      return rows.map(({ id }) => id);
    };
    assert.deepEqual(await list(undefined, 3), ['prp_4', 'prp_3', 'prp_2']);
    assert.deepEqual(await list('prp_2', 3), ['prp_1']);
    assert.deepEqual(await list(undefined, 3, 'ord_prp_4'), ['prp_4']);
    assert.deepEqual(await list(undefined, 3, 'ord_prp_1'), ['prp_1']);
  });

  it('show in the backlog how long they should be stored as expired', async () => {
    const { clock, database } = settling;
    const overdueDays = async () => {
      const { removal } = await readBacklog(database, clock);
      return (removal.find(({ worker }) => worker === 'proposal-expiry')?.overdueMs ?? -1) / dayMs;
    };
    await propose('prp_1');
    assert.equal(await overdueDays(), 0);
    clock.advanceBusiness(proposalLifeMs + 2 * dayMs);
    assert.equal(await overdueDays(), 2);
    run();
    await eventually(async () => assert.equal(await overdueDays(), 0));
  });
});
