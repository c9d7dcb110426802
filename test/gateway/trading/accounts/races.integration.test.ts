import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { ApplicationOutcome } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { apply } from '../../../support/applications.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  callTimeout,
  operatorToken,
  startGateway,
  type TestGateway,
  type TestPartner,
} from '../../../support/gateway.ts';
import { operatorTokens, TwoOperators } from '../../../support/two-operators.ts';

describe('an account that another partner is given at the same moment', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  before(async () => {
    gateway = await startGateway({
      MARINA_SUBMIT_TIMEOUT_MS: '1000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
  });
  after(async () => {
    operators.close();
    await gateway.stop();
  });

  /** Links an account to a partner in a transaction that commits once another transaction waits for it. */
  async function linkingMeanwhile(partner: TestPartner, account: string) {
    const connection = await createConnection(gateway.databaseUrl);
    await connection.query('START TRANSACTION');
    const link = 'INSERT INTO accounts (partner_id, account, created_at) VALUES (?, ?, NOW(3))';
    await connection.query(link, [partner.id, account]);
    return {
      async commitOnceWaitedFor() {
        try {
          await eventually(async () => {
            await delay(150); // Asked more often, the server answers the same again.
            const [rows] = await connection.query<RowDataPacket[]>(
              "SELECT trx_query FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
            );
            assert.ok(rows.some(({ trx_query: query }) => String(query).includes(account)));
          });
          await connection.query('COMMIT');
        } finally {
          connection.destroy();
        }
      },
    };
  }

  const newAccount = () => `R${randomUUID().slice(0, 8).toUpperCase()}`;
  const stateOf = async (partner: TestPartner, id: string): Promise<string> =>
    (await gateway.rest('GET', `/v1/applications/${id}`, { key: partner.key })).body.state;
  async function accountsOf(partner: TestPartner): Promise<string[]> {
    const { body } = await gateway.rest('GET', '/v1/accounts', { key: partner.key });
    return body.data.map((each: { account: string }) => each.account);
  }

  it('is not given to the partner whose application the broker reports as opened with it', async () => {
    const [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
    const account = newAccount();
    const { body } = await apply(gateway, partner, { last_name: 'SIM-WAIT' });
    const link = await linkingMeanwhile(other, account);
    const opened = { clientApplicationId: body.id, outcome: ApplicationOutcome.OPEN, account };
    await gateway.controls.decideApplication(opened, callTimeout);
    await link.commitOnceWaitedFor();
    const contradicts = (line: string) => line.includes(body.id) && line.includes('contradicts');
    await eventually(() => assert.ok(gateway.logged.some(contradicts)));
    assert.equal(await stateOf(partner, body.id), 'documents_required');
    assert.ok(!(await accountsOf(partner)).includes(account));
    assert.ok((await accountsOf(other)).includes(account));
    assert.ok(!gateway.logged.some((line) => line.includes("a partner's objects cannot be changed")));
  });

  it('is not given to the partner whose application operators settle as opened with it', async () => {
    const [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
    const account = newAccount();
    const { body } = await apply(gateway, partner, { last_name: 'SIM-RESET' });
    const outcome = { application: { state: 'SETTLED_APPLICATION_STATE_OPENED', account, reference: 'B7' } };
    const proposal = await operators.propose(body.id, outcome);
    const link = await linkingMeanwhile(other, account);
    const approved = operators.refused('bola', 'Proposals.ApproveProposal', { id: proposal, reason: 'checked' });
    await Promise.all([link.commitOnceWaitedFor(), approved]);
    const { code, details } = await approved;
    assert.deepEqual([code, details], [status.FAILED_PRECONDITION, "the account is another partner's"]);
    assert.equal(await stateOf(partner, body.id), 'uncertain');
    assert.ok((await accountsOf(other)).includes(account));
  });
});
