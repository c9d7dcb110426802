import assert from 'node:assert/strict';
import { it } from 'node:test';
import { connect } from 'node:tls';
import { createLogger } from '../../src/kit/log.ts';
import { logNodeWarnings } from '../../src/kit/node-warnings.ts';
import { eventually } from '../support/eventually.ts';

it("Node's warnings are logged, but not that TLS is given an IP address as a server's name", async () => {
  const logged: string[] = [];
  logNodeWarnings(
    createLogger({ name: 'test', level: 'warn', destination: { write: (line) => void logged.push(line) } }),
  );
  connect({ port: 1, host: '127.0.0.1', servername: '127.0.0.1' }).on('error', () => undefined);
  process.emitWarning('another warning', 'DeprecationWarning', 'DEP9999');
  await eventually(() => assert.match(logged.join(''), /another warning/));
  assert.equal(logged.length, 1, logged.join(''));
});
