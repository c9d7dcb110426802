import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { type Grpc, watchBroker } from './broker.ts';
import { type Driver, watchDatabase } from './database.ts';
import { type JetStream, watchJetStream } from './jetstream.ts';
import { type Armed, Watch } from './watch.ts';
import { type Undici, watchWebhooks } from './webhooks.ts';

/**
 * Is loaded into a gateway's process before its own code. It watches what the process writes and whom it calls, and takes
 * orders at a socket. Processes that the gateway starts are left alone.
 */
const socket = process.env.MARINA_MOMENTS;
const entry = process.argv[1];
delete process.env.MARINA_MOMENTS;
delete process.env.NODE_OPTIONS;
if (socket !== undefined && entry !== undefined) install(socket, createRequire(entry));

function install(path: string, require: NodeJS.Require): void {
  const watch = new Watch();
  watchDatabase(require('mysql2') as Driver, watch);
  watchBroker(require('@grpc/grpc-js') as Grpc, watch);
  const folder = 'nats/lib/jetstream';
  watchJetStream({ ...require(`${folder}/jsclient.js`), ...require(`${folder}/jsmsg.js`) } as JetStream, watch);
  watchWebhooks(require('undici') as Undici, watch);
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const { seen } = watch;
      if (request.url === '/begin') watch.begin((JSON.parse(text) as { armed?: Armed }).armed);
      response.end(JSON.stringify(seen));
    });
  });
  server.listen(path);
  server.unref();
}
