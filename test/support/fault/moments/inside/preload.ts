import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { type Grpc, watchBroker } from './broker.ts';
import { type Driver, watchDatabase } from './database.ts';
import { type Files, watchFiles } from './files.ts';
import { type Net, watchFix } from './fix.ts';
import { type JetStream, watchJetStream } from './jetstream.ts';
import { type Armed, Watch } from './watch.ts';
import { type Undici, watchWebhooks } from './webhooks.ts';

/** How a process is watched, as the variable `MARINA_MOMENTS` says in JSON. */
export interface Watching {
  /** Where it takes orders. A process that ends by itself takes none. */
  readonly socket?: string;
  /** The file to which it appends each moment, a line each. */
  readonly file?: string;
  /** The fate that is chosen before it starts. */
  readonly armed?: Armed;
}

/**
 * Is loaded into a process before its own code. It watches what the process writes and whom it calls. Processes that the
 * process starts are left alone.
 */
const watching = process.env.MARINA_MOMENTS;
const entry = process.argv[1];
delete process.env.MARINA_MOMENTS;
delete process.env.NODE_OPTIONS;
if (watching !== undefined && entry !== undefined) install(JSON.parse(watching) as Watching, createRequire(entry));

function install({ socket, file, armed }: Watching, require: NodeJS.Require): void {
  const watch = new Watch(armed, (moment) => {
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(moment)}\n`);
  });
  watchDatabase(require('mysql2') as Driver, watch);
  watchBroker(require('@grpc/grpc-js') as Grpc, watch);
  const folder = 'nats/lib/jetstream';
  watchJetStream({ ...require(`${folder}/jsclient.js`), ...require(`${folder}/jsmsg.js`) } as JetStream, watch);
  watchWebhooks(require('undici') as Undici, watch);
  watchFix(require('node:net') as Net, watch);
  watchFiles(require('node:fs/promises') as Files, watch);
  if (socket !== undefined) takeOrders(socket, watch);
}

function takeOrders(path: string, watch: Watch): void {
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
