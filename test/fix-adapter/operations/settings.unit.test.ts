import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type OperationConfig, operationProblems } from '../../../src/fix-adapter/operations/settings.ts';

it('the operators’ port needs TLS unless it listens on a loopback address, with both of its files', () => {
  const [host, certificate, key, authorities] = [
    /ADMIN_HOST/,
    /CERT_FILE and/,
    /KEY_FILE must be set together/,
    /CLIENT_CA_FILE needs/,
  ];
  const problemsOf = (adminHost: string | undefined, files: string) =>
    operationProblems({
      adminHost,
      adminTlsCertificate: files.includes('c') ? '/cert' : undefined,
      adminTlsKey: files.includes('k') ? '/key' : undefined,
      adminTlsAuthorities: files.includes('a') ? '/ca' : undefined,
    } as OperationConfig);
  for (const [adminHost, files, expected] of [
    ['127.0.0.1', '', []],
    ['::1', '', []],
    [undefined, '', []],
    ['0.0.0.0', '', [host]],
    ['10.0.0.1', '', [host]],
    ['0.0.0.0', 'ck', []],
    ['0.0.0.0', 'cka', []],
    ['127.0.0.1', 'ck', []],
    ['127.0.0.1', 'c', [certificate]],
    ['127.0.0.1', 'k', [key]],
    ['0.0.0.0', 'k', [key, host]],
    ['127.0.0.1', 'a', [authorities]],
    ['127.0.0.1', 'ca', [certificate]],
    ['0.0.0.0', 'a', [authorities, host]],
  ] as const) {
    const problems = problemsOf(adminHost, files);
    assert.equal(problems.length, expected.length, `${adminHost} ${files}: ${problems}`);
    for (const [at, pattern] of expected.entries()) assert.match(problems[at] ?? '', pattern);
  }
});
