import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { databaseAddress } from '../../../src/gateway/store/address.ts';
import { DatabaseHosts } from '../../../src/gateway/store/hosts.ts';
import { isPrimary, whyUnsafe } from '../../../src/gateway/store/server-kind.ts';

const three = 'mysql://user:p%40ss@a:3307,b,[::1]:3308/marina';

describe('the URL of a database with several hosts', () => {
  it('gives each host its port, and all the same user and database', () => {
    assert.deepEqual(databaseAddress(three), {
      hosts: [
        { host: 'a', port: 3307 },
        { host: 'b', port: 3306 },
        { host: '::1', port: 3308 },
      ],
      user: 'user',
      password: 'p@ss',
      database: 'marina',
    });
  });

  it('is refused with an empty host, one that is there twice, a parameter, or too many', () => {
    for (const [url, problem] of [
      ['mysql://u@a,/marina', /one host/],
      ['mysql://u@,a/marina', /one host/],
      ['mysql://u@a,a:3306/marina', /each host once/],
      ['mysql://u@a,b/marina?ssl=true', /unknown parameter ssl/],
      ['mysql://u@a,b/marina#x', /unknown part/],
      [`mysql://u@${Array.from({ length: 10 }, (_, at) => `h${at}`)}/marina`, /at most 9 hosts/],
      ['postgres://u@a,b/marina', /must be mysql:/],
    ] as const) {
      assert.throws(() => databaseAddress(url), problem, url);
    }
  });

  it('never shows a part of the user or password when it is wrong', () => {
    for (const url of ['mysql://us,er:canary@a/b/c', 'mysql://canary:x,y@a:bad,b/m', 'mysql://canary,pass@/m']) {
      try {
        databaseAddress(url);
      } catch (error) {
        assert.doesNotMatch((error as Error).message, /canary|er:/);
      }
    }
  });
});

describe('the host of a database that is used', () => {
  const good = { node: undefined, writer: undefined };
  const at = (node: string, writer: string | undefined) => ({ node, writer });
  type Answers = Record<string, typeof good | (ReturnType<typeof at> & { isBehind?: boolean }) | 'full' | undefined>;

  function hostsWith(answers: Answers) {
    const changes: boolean[] = [];
    const access = { current: { url: 'mysql://u@a,b,c/marina', tls: undefined } };
    const clock = { ms: 0 };
    const ask = async (_: unknown, { host }: { host: string }) => answers[host];
    const hosts = new DatabaseHosts(access, undefined, ask, () => clock.ms);
    hosts.onChange(({ isLost }) => changes.push(isLost));
    return { hosts, changes, clock };
  }

  it('is the first good one of the list', async () => {
    const { hosts } = hostsWith({ b: good, c: good });
    await hosts.choose();
    assert.equal(hosts.current.host, 'b');
  });

  it('is one that is up to date, if there is one that gateways can write through', async () => {
    const behind = { ...at('a', 'd'), isBehind: true };
    const answers: Answers = { a: behind, b: at('b', 'd') };
    const { hosts } = hostsWith(answers);
    await hosts.choose();
    assert.equal(hosts.current.host, 'b');
    answers.b = undefined;
    for (let polls = 0; polls < 2; polls += 1) await hosts.poll();
    assert.equal(
      hosts.current.host,
      'a',
      'one that is behind is better than none: it takes over when it has everything',
    );
    answers.b = at('b', 'd');
    await hosts.poll();
    assert.equal(hosts.current.host, 'b', 'it has not taken over yet');
    answers.a = { ...at('a', 'a'), isBehind: true };
    answers.b = at('b', 'a');
    await hosts.poll();
    assert.equal(hosts.current.host, 'a', 'gateways write through it');
  });

  it('stays while it is good, also when an earlier one is good again', async () => {
    const answers: Answers = { b: good };
    const { hosts } = hostsWith(answers);
    await hosts.choose();
    answers.a = good;
    for (let polls = 0; polls < 5; polls += 1) await hosts.poll();
    assert.equal(hosts.current.host, 'b');
  });

  it('is none if two of them have one name, because both would take writes', async () => {
    const { hosts } = hostsWith({ a: at('one', undefined), b: at('two', undefined), c: at('one', undefined) });
    await assert.rejects(hosts.choose(), /two hosts of the database call themselves one/);
  });

  it('stays while it serves what it has and takes no more connections', async () => {
    const answers: Answers = { a: good, b: good };
    const { hosts, changes } = hostsWith(answers);
    await hosts.choose();
    answers.a = 'full';
    for (let polls = 0; polls < 5; polls += 1) await hosts.poll();
    assert.equal(hosts.current.host, 'a');
    assert.deepEqual(changes, []);
  });

  it('is left when it takes no more connections and those that it has get no answer either', async () => {
    const answers: Answers = { a: good, b: good };
    const { hosts, changes, clock } = hostsWith(answers);
    await hosts.choose();
    answers.a = 'full';
    for (let second = 0; second < 60; second += 1) {
      clock.ms += 1_000;
      hosts.noteServed();
      await hosts.poll();
    }
    assert.equal(hosts.current.host, 'a', 'it serves');
    for (let second = 0; second < 25; second += 1) {
      clock.ms += 1_000;
      await hosts.poll();
    }
    assert.equal(hosts.current.host, 'b', 'it serves nobody');
    assert.deepEqual(changes, [true]);
  });

  it('a host stays if it takes no more connections a moment after it took the place of another one', async () => {
    const answers: Answers = { a: good, b: good };
    const { hosts, clock } = hostsWith(answers);
    await hosts.choose();
    clock.ms = 600_000;
    answers.a = undefined;
    for (let polls = 0; polls < 2; polls += 1) await hosts.poll();
    assert.equal(hosts.current.host, 'b');
    answers.a = good;
    answers.b = 'full';
    for (let polls = 0; polls < 5; polls += 1) await hosts.poll();
    assert.equal(hosts.current.host, 'b');
  });

  it('is left after two looks in a row without a good answer, and not after one', async () => {
    const answers: Answers = { a: good, b: good };
    const { hosts, changes } = hostsWith(answers);
    await hosts.choose();
    answers.a = undefined;
    await hosts.poll();
    answers.a = good;
    await hosts.poll();
    answers.a = undefined;
    await hosts.poll();
    assert.equal(hosts.current.host, 'a');
    await hosts.poll();
    assert.equal(hosts.current.host, 'b');
    assert.deepEqual(changes, [true]);
  });

  it('is the node that gateways write through, if that is good', async () => {
    const answers: Answers = { a: at('A', 'B'), b: at('B', 'B'), c: at('C', 'B') };
    const { hosts, changes } = hostsWith(answers);
    await hosts.choose();
    assert.equal(hosts.current.host, 'b');
    for (const [host, node] of [
      ['a', 'A'],
      ['b', 'B'],
      ['c', 'C'],
    ] as const) {
      answers[host] = at(node, 'C');
    }
    await hosts.poll();
    assert.equal(hosts.current.host, 'c');
    assert.deepEqual(changes, [false, false], 'what is under way there ends by itself');
  });

  it('is another good one when that node is gone, and stays when none is good', async () => {
    const answers: Answers = { a: at('A', 'A'), b: at('B', 'A'), c: at('C', 'A') };
    const { hosts } = hostsWith(answers);
    await hosts.choose();
    answers.a = undefined;
    await hosts.poll();
    await hosts.poll();
    assert.equal(hosts.current.host, 'b');
    answers.b = undefined;
    answers.c = undefined;
    for (let polls = 0; polls < 5; polls += 1) await hosts.poll();
    assert.equal(hosts.current.host, 'b');
  });
});

describe('a member of a group of MySQL servers', () => {
  const group = {
    version: '9.7.4',
    group_replication_group_name: '8a94f357',
    group_replication_single_primary_mode: 'ON',
    group_replication_consistency: 'BEFORE_ON_PRIMARY_FAILOVER',
  };
  const rowsOf = (values: Record<string, string>) =>
    Object.entries(values).map(([name, value]) => ({ Variable_name: name, Value: value }));
  const member = (state: string, role: string, isOwn: boolean) => ({ is_own: Number(isOwn), state, role });
  const online = [member('ONLINE', 'PRIMARY', true), member('ONLINE', 'SECONDARY', false)];

  it('is used while it takes part, and so is a server that is of no group', () => {
    assert.equal(whyUnsafe(rowsOf(group), online), undefined);
    assert.equal(whyUnsafe(rowsOf({ version: '9.7.4' }), undefined), undefined);
    assert.equal(whyUnsafe(rowsOf({ version: '10.11.6-MariaDB' }), []), undefined);
    assert.equal(whyUnsafe(rowsOf({ ...group, group_replication_group_name: '' }), []), undefined);
  });

  it('is refused, with the reason, if what it stores could be lost or what it shows be old', () => {
    for (const [changed, members, reason] of [
      [{ group_replication_single_primary_mode: 'OFF' }, online, /several primaries/],
      [{ group_replication_consistency: 'EVENTUAL' }, online, /must be BEFORE_ON_PRIMARY_FAILOVER/],
      [{ group_replication_consistency: 'AFTER' }, online, /must be BEFORE_ON_PRIMARY_FAILOVER/],
      [{}, undefined, /rights/],
      [{}, [], /OFFLINE/],
      [{}, [member('RECOVERING', 'SECONDARY', true)], /RECOVERING/],
      [{}, [member('ERROR', '', true)], /ERROR/],
    ] as const) {
      assert.match(whyUnsafe(rowsOf({ ...group, ...changed }), members) ?? '', reason);
    }
  });

  it('is the one to write through if it is the primary and reaches most of the others', () => {
    const other = (state: string) => member(state, 'SECONDARY', false);
    assert.ok(isPrimary(online));
    assert.ok(isPrimary([member('ONLINE', 'PRIMARY', true), other('ONLINE'), other('UNREACHABLE')]));
    assert.ok(!isPrimary([member('ONLINE', 'PRIMARY', true), other('UNREACHABLE'), other('UNREACHABLE')]));
    assert.ok(!isPrimary([member('ONLINE', 'PRIMARY', true), other('UNREACHABLE')]), 'a half is not most');
    assert.ok(!isPrimary([member('ONLINE', 'SECONDARY', true), member('ONLINE', 'PRIMARY', false)]));
  });
});
