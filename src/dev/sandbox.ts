import { join } from 'node:path';
import { migrate } from '../db/migrate.ts';
import { Advice } from './advice.ts';
import { gatherAuthorities } from './authorities.ts';
import { createDatabases, type Databases, serverVersion, useDatabases } from './databases.ts';
import { endLeftover } from './leftover.ts';
import { isPortTaken, readGreeting } from './ports.ts';
import {
  gatewayEntry,
  receiverEntry,
  simulatorEntry,
  startGateway,
  startReceiver,
  startSimulator,
  type Watch,
} from './processes.ts';
import type { Progress } from './progress.ts';
import { earlierPort, type ReceiverSays, registerReceiver } from './receiver.ts';
import { readSandbox, type Sandbox, writeSandbox } from './sandbox-file.ts';
import { keptSecret } from './secrets.ts';
import { seedPartners } from './seed.ts';
import { askedServer, startMariaDb, startNats } from './servers.ts';
import { type PortName, portVariables, type RunSettings } from './settings.ts';

/** Starts everything a sandbox is made of, and tells about it in its file once it can be used. */
export async function startSandbox(settings: RunSettings, progress: Progress, watch: Watch): Promise<Sandbox> {
  const { dataDir } = settings;
  const earlier = readSandbox(dataDir);
  await endLeftover(earlier?.pids.gateway ?? 0, gatewayEntry);
  await endLeftover(earlier?.pids.simulator ?? 0, simulatorEntry);
  await endLeftover(earlier?.pids.receiver ?? 0, receiverEntry);
  await requirePorts(settings);
  if (earlier !== undefined) writeSandbox(dataDir, { ...earlier, pids: { run: process.pid } });

  const [database, nats] = await Promise.all([
    openDatabases({ settings, progress, watch }),
    openNats({ settings, progress, watch }),
  ]);
  const { databases } = database;
  const kept = earlier?.partners ?? [];
  const authorityFile = join(dataDir, 'receiver-authority.pem');
  const [simulator, receiver] = await Promise.all([
    progress.step('simulator', startSimulator(settings, databases.simulatorUrl, watch)),
    progress.step('webhook receiver', startReceiver(settings, earlierPort(kept), authorityFile, watch)),
    progress.step('migrations', migrate(databases.ownerUrl)).then(databases.grant),
  ]);
  const simulatorAddress = address(settings, 'simulator', simulator.ports.port);
  const token = keptSecret(join(dataDir, 'operator-token'), 24);
  receiver.process.onMessage((message) => {
    const said = message as ReceiverSays;
    if (said.type === 'received') progress.note(said.line);
  });
  for (const { id, name, webhook_secret: secret } of kept) {
    if (secret !== undefined) receiver.process.send({ id, name, secret });
  }
  const operatorTokens = settings.operatorTokens ?? `operator:${token}`;
  const secretKey = settings.secretKey ?? keptSecret(join(dataDir, 'secret-key'), 32);
  const gateway = await progress.step(
    'gateway',
    startGateway(
      settings,
      {
        databaseUrl: databases.gatewayUrl,
        natsUrl: nats.url,
        simulatorAddress,
        secretKey,
        operatorTokens,
        authorityFile: gatherAuthorities(dataDir, authorityFile, settings.authorityFiles),
      },
      watch,
    ),
  );
  const { restPort, grpcPort, adminPort, opsPort } = gateway.ports;
  const restUrl = `http://${address(settings, 'rest', restPort)}`;
  const operatorToken = operatorTokens.split(',')[0]?.split(':')[1] ?? '';
  const adminAddress = address(settings, 'admin', adminPort);
  const { ownerUrl } = databases;
  const seeding = seedPartners({ ownerUrl, restUrl, simulatorAddress, secretKey, kept }).then((partners) =>
    registerReceiver({
      adminAddress,
      operatorToken,
      receiverPort: receiver.ports.port,
      partners,
      kept,
      introduce: (partner) => receiver.process.send(partner),
    }),
  );
  const sandbox: Sandbox = {
    rest_url: restUrl,
    grpc_address: address(settings, 'grpc', grpcPort),
    admin_address: adminAddress,
    ops_url: `http://${address(settings, 'ops', opsPort)}`,
    simulator_address: simulatorAddress,
    operator_token: operatorToken,
    database: database.version,
    partners: await progress.step('two partners', seeding),
    pids: {
      run: process.pid,
      gateway: gateway.process.pid,
      simulator: simulator.process.pid,
      receiver: receiver.process.pid,
      ...(database.pid === undefined ? {} : { mariadb: database.pid }),
      ...(nats.pid === undefined ? {} : { nats: nats.pid }),
    },
  };
  writeSandbox(dataDir, sandbox);
  return sandbox;
}

/** What each part of a sandbox is started with. */
interface Start {
  readonly settings: RunSettings;
  readonly progress: Progress;
  readonly watch: Watch;
}

/** What a private server of a name is started with. */
function privately({ settings, progress }: Start, name: string) {
  return { dataDir: join(settings.dataDir, name), packagesFolder: join(settings.dataDir, 'packages'), progress };
}

async function openDatabases(start: Start): Promise<{ databases: Databases; version: string; pid?: number }> {
  const { settings, progress, watch } = start;
  const asked = askedServer();
  if (settings.databaseUrl !== undefined) {
    const databases = await progress.step('databases (yours)', useDatabases(settings.databaseUrl, settings));
    const version = await serverVersion(databases.ownerUrl);
    if (asked !== undefined && !version.toLowerCase().startsWith(asked)) {
      throw new Advice(
        `MARINA_DATABASE_URL leads to ${version}, not to ${asked}.`,
        'Leave one of the two settings out.',
      );
    }
    return { databases, version: `${version} (yours)` };
  }
  const options = privately(start, asked ?? 'mariadb');
  const server = await progress.step(asked === 'mysql' ? 'MySQL' : 'MariaDB', startMariaDb(options));
  watch(server.process);
  const databases = await createDatabases(server.url, options.dataDir);
  return { databases, version: await serverVersion(databases.ownerUrl), pid: server.pid };
}

async function openNats(start: Start): Promise<{ url: string; pid?: number }> {
  const { settings, progress, watch } = start;
  if (settings.natsUrl !== undefined) {
    if (!(await answersAsNats(settings.natsUrl)))
      progress.note('The NATS of MARINA_NATS_URL does not answer: no events until it does');
    return { url: settings.natsUrl };
  }
  const server = await progress.step('NATS', startNats(privately(start, 'nats')));
  watch(server.process);
  return server;
}

/** Whether one of the servers named answers now; a gateway works on without them, and catches up. */
async function answersAsNats(urls: string): Promise<boolean> {
  for (const url of urls.split(',')) {
    const address = url.includes('://') ? url : `nats://${url}`;
    if (!URL.canParse(address)) continue;
    const { hostname, port } = new URL(address);
    const greeting = await readGreeting(Number(port || 4222), 2_000, hostname);
    if (greeting?.toString().startsWith('INFO ')) return true;
  }
  return false;
}

/** Checks the ports before anything is started, so that the reason is shown first and alone. */
async function requirePorts(settings: RunSettings): Promise<void> {
  for (const name of Object.keys(portVariables) as PortName[]) {
    const port = settings.ports[name];
    const host = settings.hosts[name];
    if (port === 0 || !(await isPortTaken(port, host))) continue;
    throw new Advice(
      `Port ${port} of ${host} is taken.`,
      `Stop what uses it, or choose another: ${portVariables[name]}=${port + 1} make run (0 takes a free one).`,
    );
  }
}

/** How this machine reaches a port, also one that is open on all addresses. */
function address(settings: RunSettings, name: PortName, port: number): string {
  const host = settings.hosts[name];
  return `${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host}:${port}`;
}
