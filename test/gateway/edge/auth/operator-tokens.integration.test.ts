import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { newOperatorToken } from '../../../../src/kit/operator-tokens.ts';
import { adminClient } from '../../../support/admin.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';
import { runCommand, SecretFile, secretRefused } from '../../../support/secret-files.ts';

const hourMs = 3_600_000;

describe("operators' tokens in a file", () => {
  const plain = 'ada-plain-operator-token-0123456789';
  const hashed = newOperatorToken('ada', Date.now() + hourMs);
  const file = new SecretFile(`ada:${plain}`, hashed.line);
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ MARINA_OPERATOR_TOKENS: '', MARINA_OPERATOR_TOKENS_FILE: file.path });
  });
  after(() => gateway.stop());

  /** Makes a call that changes something and returns OK, or the name of the error. */
  async function outcome(token: string, name = 'Partner'): Promise<string> {
    const admin = adminClient(gateway.app.adminPort, token);
    try {
      await admin.partners.createPartner({ name }, admin.options);
      return 'OK';
    } catch (error) {
      return status[(error as { code: number }).code] ?? 'none';
    } finally {
      admin.close();
    }
  }

  it('may be several of one operator, plain and hashed, and the audit names the operator', async () => {
    assert.deepEqual([await outcome(plain), await outcome(hashed.token)], ['OK', 'OK']);
    assert.equal(await outcome(`${hashed.token}x`), 'UNAUTHENTICATED');
    const rows = await gateway.database.read(statement('SELECT DISTINCT operator FROM audit_entries'));
    assert.deepEqual(rows, [{ operator: 'ada' }]);
  });

  it('are admitted and refused as soon as their file has changed, while the gateway runs', async () => {
    const grace = newOperatorToken('grace', Date.now() + hourMs);
    assert.equal(await outcome(grace.token), 'UNAUTHENTICATED');
    await file.change([hashed.line, grace.line], gateway.logged);
    assert.deepEqual([await outcome(grace.token), await outcome(hashed.token)], ['OK', 'OK']);
    assert.equal(await outcome(plain), 'UNAUTHENTICATED', 'it was removed');
    const shown = await scrape(gateway.app.opsPort);
    const seconds = shown.value('marina_operator_token_expires_seconds', { operator: 'grace' });
    assert.ok(seconds > 3_000 && seconds <= 3_600, String(seconds));
    await file.change(['canary'], gateway.logged, secretRefused);
    assert.equal(await outcome(grace.token), 'OK', 'a wrong file changes nothing');
    for (const line of gateway.logged) assert.doesNotMatch(line, /canary/);
  });

  it('wrong tokens degrade the gateway and have a metric, until the file is good again', async () => {
    const refused = async () => ({
      metric: (await scrape(gateway.app.opsPort)).value('marina_changed_files_refused', { link: 'operator tokens' }),
      health: await (await fetch(`http://127.0.0.1:${gateway.app.opsPort}/readyz`)).json(),
    });
    const part = /changed-files|changed files/;
    await file.change(['another canary'], gateway.logged, secretRefused);
    const during = await refused();
    assert.equal(during.metric, 1);
    assert.match(JSON.stringify(during.health), part);
    assert.match(JSON.stringify(during.health), /operator tokens/);
    await file.change([hashed.line], gateway.logged);
    const afterwards = await refused();
    assert.equal(afterwards.metric, 0);
    assert.doesNotMatch(JSON.stringify(afterwards.health), part);
  });

  it('are refused from the second in which they expire', async () => {
    const endsAt = Math.ceil(Date.now() / 1_000) * 1_000 + 8_000;
    const short = newOperatorToken('ada', endsAt);
    await file.change([hashed.line, short.line], gateway.logged);
    assert.equal(await outcome(short.token), Date.now() < endsAt ? 'OK' : 'UNAUTHENTICATED');
    await delay(endsAt - Date.now());
    assert.equal(await outcome(short.token), 'UNAUTHENTICATED');
    assert.equal(await outcome(hashed.token), 'OK');
  });

  it('come from a command, which shows a token once and the line that admits it', async () => {
    const made = runCommand(['operator-token', 'linus', '--days', '2'], {});
    assert.equal(await made.ended, 0, made.printed());
    const [, token = '', line = ''] = /^token: (\S+)\nline: {2}(.+)\n$/.exec(made.printed()) ?? [];
    await file.change([hashed.line, line], gateway.logged);
    assert.equal(await outcome(token), 'PERMISSION_DENIED', 'without a role it may only read');
    for (const args of [
      ['--days', '0'],
      ['--role', 'root'],
      ['--role', ''],
    ]) {
      assert.equal(await runCommand(['operator-token', 'linus', ...args], {}).ended, 2, args.join(' '));
    }
    const second = runCommand(['operator-token', 'linus', '--role', 'admin+read'], {});
    assert.equal(await second.ended, 0, second.printed());
    const [, admins = '', itsLine = ''] = /^token: (\S+)\nline: {2}(.+)\n$/.exec(second.printed()) ?? [];
    assert.match(itsLine, / role=read\+admin$/);
    await file.change([hashed.line, line, itsLine], gateway.logged);
    assert.equal(await outcome(admins), 'OK');
  });
});
