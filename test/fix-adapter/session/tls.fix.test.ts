import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { openConnection } from '../../../src/fix-adapter/session/link.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import type { LinkTls } from '../../../src/kit/link.ts';
import { makeAuthority } from '../../../src/sandbox/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { Exchange } from '../../support/fix/exchange.ts';
import { begin, textsOf } from '../../support/fix/session.ts';

const authority = await makeAuthority('exchanges');
const clients = await makeAuthority('clients');
const server = await authority.issue(['localhost', '127.0.0.1']);
const named = await authority.issue(['fix.exchange.example']);
const us = await clients.issueClient('marina');

const material = { ca: Buffer.from(authority.cert), cert: Buffer.from(us.cert), key: Buffer.from(us.key) };

function startExchange(identity = server): Promise<Exchange> {
  return Exchange.start('FIXT.1.1', {
    ...{ cert: identity.cert, key: identity.key },
    ...{ ca: clients.cert, requestCert: true, rejectUnauthorized: true },
  });
}

const connecting = (tls: LinkTls) => (exchange: Exchange) =>
  openConnection(`localhost:${exchange.port}`, tls, new AbortController().signal);

describe('a FIX session over TLS', () => {
  it('shows its certificate, and carries orders and reports', async (context) => {
    const exchange = await startExchange();
    const { record, up, send } = await begin(context, { exchange, connect: connecting(material) });
    await up();
    assert.equal(await send('one'), 'written');
    await eventually(() => assert.equal(exchange.arrivals.get('one'), 1));
    exchange.send('B', [tags.Text, 'news']);
    await eventually(() => assert.deepEqual(textsOf(record), ['news']));
  });

  it('writes many orders at once without a listener for each', async (context) => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on('warning', warn);
    context.after(() => process.off('warning', warn));
    const exchange = await startExchange();
    const { up, send } = await begin(context, { exchange, connect: connecting(material) });
    await up();
    const outcomes = await Promise.all(Array.from({ length: 50 }, (_, at) => send(`o${at}`)));
    assert.deepEqual([...new Set(outcomes)], ['written']);
    await eventually(() => assert.equal(exchange.arrivals.size, 50));
    assert.deepEqual(
      warnings.map(({ name }) => name),
      [],
    );
  });

  it('speaks with no server that it cannot prove', async (context) => {
    const exchange = await startExchange();
    context.after(() => exchange.close());
    await assert.rejects(connecting({ ...material, ca: Buffer.from(clients.cert) })(exchange));
    await assert.rejects(connecting({ ...material, serverName: 'fix.exchange.example' })(exchange));
    assert.equal(exchange.received.length, 0);
  });

  it('knows a server by another name than that of its host', async (context) => {
    const exchange = await startExchange(named);
    const tls = { ...material, serverName: 'fix.exchange.example' };
    const { up } = await begin(context, { exchange, connect: connecting(tls) });
    await up();
  });

  it('sends each message at once', async (context) => {
    const exchange = await startExchange();
    const setNoDelay = context.mock.method(Socket.prototype, 'setNoDelay');
    const socket = await connecting(material)(exchange);
    socket.destroy();
    context.after(() => exchange.close());
    assert.ok(setNoDelay.mock.calls.some((call) => call.this === socket && call.arguments[0] === true));
  });

  it('gives up a server that accepts and says nothing', async (context) => {
    const exchange = await Exchange.start();
    context.after(() => exchange.close());
    const stopping = new AbortController();
    const opening = openConnection(`127.0.0.1:${exchange.port}`, material, stopping.signal);
    await eventually(() => assert.equal(exchange.connections, 1));
    stopping.abort();
    await assert.rejects(opening);
    await eventually(() => assert.equal(exchange.isConnected, false));
  });
});
