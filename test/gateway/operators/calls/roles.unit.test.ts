import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { getOption, ScalarType } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { callRules, requireRole } from '../../../../src/gateway/operators/calls/roles.ts';
import { operator_call as operatorCall } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import {
  type OperatorRole,
  operatorRoles,
  operatorsWithoutEnd,
  parseOperatorTokens,
  roleHolders,
  tokenExpiries,
} from '../../../../src/kit/operator-tokens.ts';
import { operatorReference, operatorServices } from '../../../../src/tools/operator-reference.ts';

const hash = 'ab'.repeat(32);

describe("the roles of operators' calls", () => {
  it('each method that operators call states its roles', async () => {
    const methods = (await operatorServices()).flatMap((service) => service.methods);
    assert.ok(methods.length > 50, `only ${methods.length} methods were found`);
    const silent = methods.filter((method) => getOption(method, operatorCall).roles.length === 0);
    assert.deepEqual(
      silent.map(({ name }) => name),
      [],
    );
  });

  it('let only calls that change nothing be made with the role read', async () => {
    for (const method of (await operatorServices()).flatMap((service) => service.methods)) {
      const { roles, readsOnly } = callRules(method);
      assert.ok(readsOnly || !roles.includes('read'), method.name);
    }
  });

  it('each call that does not only read has a field that says why', async () => {
    for (const method of (await operatorServices()).flatMap((service) => service.methods)) {
      const { readsOnly, reason } = callRules(method);
      if (readsOnly) continue;
      assert.ok(reason !== undefined, `${method.parent.name}.${method.name} has no field \`reason\``);
      assert.equal(reason.scalar, ScalarType.STRING, method.name);
    }
  });

  it('the page of calls lists the roles of each', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../../../docs/operations/calls.md'), 'utf8');
    assert.equal(page, await operatorReference(), 'run make generate');
  });

  it('include read in each role, and everything in admin', () => {
    const allows = (roles: OperatorRole[], needed: OperatorRole[]) => {
      try {
        requireRole('the call', { roles: [...needed, 'admin'] }, { roles });
        return true;
      } catch {
        return false;
      }
    };
    for (const role of operatorRoles) {
      assert.equal(allows([role], ['read']), true, role);
      assert.equal(allows([role], []), role === 'admin', role);
      assert.equal(allows([role], ['trading']), role === 'trading' || role === 'admin', role);
    }
    assert.equal(allows(['support', 'treasury'], ['treasury']), true);
    assert.equal(allows([], ['read']), false);
  });

  it('are named when they are missing', () => {
    const refusal = (roles: OperatorRole[]) => () => requireRole('the call', { roles }, { roles: ['read'] });
    assert.throws(refusal(['trading', 'treasury', 'admin']), {
      status: status.PERMISSION_DENIED,
      message: 'the call needs one of the roles trading, treasury, admin; this token has read',
    });
    assert.throws(refusal(['admin']), { message: 'the call needs the role admin; this token has read' });
  });
});

describe("the roles in lines of operators' tokens", () => {
  const rolesIn = (text: string) => parseOperatorTokens(text).map(({ roles }) => roles.join('+'));

  it('the roles of a token are read in any order, and a line without them is for everything', () => {
    const line = `ada sha256:${hash} 2030-01-02T03:04:05Z`;
    assert.deepEqual(rolesIn(`${line} role=trading+support\n${line}\nada:${'x'.repeat(24)}`), [
      'support+trading',
      'admin',
      'admin',
    ]);
    assert.deepEqual(
      parseOperatorTokens(`${line}\n${line} role=read`).map(({ namesRoles }) => namesRoles),
      [false, true],
    );
  });

  it('the roles of a token are refused if one does not exist', () => {
    for (const role of ['root', 'read+', '', 'READ', 'read,admin', 'read support']) {
      assert.throws(() => parseOperatorTokens(`ada sha256:${hash} 2030-01-02T03:04:05Z role=${role}`), role);
    }
  });

  it('decide when an operator loses a right: when the last token with one of the roles expires, if each has an end', () => {
    const at = (day: number) => `2030-01-0${day}T00:00:00Z`;
    const line = (name: string, day: number, role: string) => `${name} sha256:${hash} ${at(day)} role=${role}`;
    const text = [
      ...[line('ada', 3, 'read'), line('ada', 2, 'treasury')],
      ...[line('bola', 3, 'admin'), line('bola', 2, 'trading')],
      ...[line('chi', 2, 'trading'), line('chi', 4, 'trading+support')],
      `dayo:${'x'.repeat(24)}`,
    ].join('\n');
    const another = `chi:${'z'.repeat(24)}`;
    assert.deepEqual(operatorsWithoutEnd(parseOperatorTokens(`${text}\n${another}`)), ['chi', 'dayo']);
    assert.deepEqual(tokenExpiries(parseOperatorTokens(text), Date.parse(at(1))), [
      ['ada', 86_400],
      ['bola', 2 * 86_400],
      ['chi', 3 * 86_400],
    ]);
  });

  it('are counted by persons, those whose token has ended not among them', () => {
    const at = Date.parse('2030-01-02T00:00:00Z');
    const line = (name: string, second: number, role: string) =>
      `${name} sha256:${hash} 2030-01-02T00:00:0${second}Z role=${role}`;
    const tokens = parseOperatorTokens(
      [
        line('ada', 1, 'admin'),
        line('Ada', 2, 'treasury'),
        line('bola', 1, 'trading+support'),
        line('chi', 0, 'admin'),
      ].join('\n'),
    );
    const counted = (now: number) => roleHolders(tokens, now).map(({ role, operators }) => `${role} ${operators}`);
    assert.deepEqual(counted(at - 1), ['read 3', 'support 3', 'trading 3', 'treasury 2', 'admin 2']);
    assert.deepEqual(counted(at), ['read 2', 'support 2', 'trading 2', 'treasury 1', 'admin 1']);
    assert.deepEqual(counted(at + 1_000), ['read 1', 'support 0', 'trading 0', 'treasury 1', 'admin 0']);
  });
});
