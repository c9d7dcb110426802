import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { migrate } from '../gateway/store/migrate.ts';
import { addressOf, answersAsNats, requirePorts } from './addresses.ts';
import { Advice } from './advice.ts';
import { gatherAuthorities } from './authorities.ts';
import { createDatabases, type Databases, serverVersion, useDatabases } from './databases.ts';
import { gatewaySecrets } from './gateway-secrets.ts';
import { endLeftover } from './leftover.ts';
import { natsAccounts, natsLogin } from './nats-accounts.ts';
import { downFolder, type Part, type PartName, type SandboxParts } from './parts.ts';
import type { ServerOptions } from './private-server.ts';
import {
  type GatewayNeeds,
  gatewayEntry,
  type ReadyProcess,
  receiverEntry,
  simulatorEntry,
  startGateway,
  startReceiver,
  startSimulator,
  type Watch,
} from './processes.ts';
import type { StartProgress } from './progress.ts';
import {
  earlierPort,
  makeReceiverIdentity,
  type ReceiverPartner,
  type ReceiverSays,
  registerReceiver,
} from './receiver.ts';
import { readSandbox, type Sandbox, writeSandbox } from './sandbox-file.ts';
import { keptSecret } from './secrets.ts';
import { seedPartners } from './seed.ts';
import { askedServer, type Server, startMariaDb, startNats } from './servers.ts';
import type { RunSettings } from './settings.ts';

/** Starts everything a sandbox is made of, and tells about it in its file once it can be used. */
export async function startSandbox(
  settings: RunSettings,
  progress: StartProgress,
  parts: SandboxParts,
  watch: Watch,
): Promise<Sandbox> {
  const { dataDir } = settings;
  // Removes the files by which an earlier run was told to keep parts down.
  rmSync(downFolder(dataDir), { recursive: true });
  const earlier = readSandbox(dataDir);
  await endLeftover(earlier?.pids.gateway ?? 0, gatewayEntry);
  await endLeftover(earlier?.pids.simulator ?? 0, simulatorEntry);
  await endLeftover(earlier?.pids.receiver ?? 0, receiverEntry);
  await requirePorts(settings);
  if (earlier !== undefined) writeSandbox(dataDir, { ...earlier, pids: { run: process.pid } });

  const [database, nats] = await Promise.all([
    openDatabases({ settings, progress, parts, watch }),
    openNats({ settings, progress, parts, watch }),
  ]);
  const { databases } = database;
  const kept = earlier?.partners ?? [];
  const { identityFile, authorityFile } = await makeReceiverIdentity(dataDir);
  const introduced: ReceiverPartner[] = [];
  const introduce = (to: Part, partner: ReceiverPartner) => {
    introduced.push(partner);
    to.process.send(partner);
  };
  const openReceiver = async (before?: ReadyProcess<'port'>) => {
    const started = await startReceiver(identityFile, earlierPort(kept), { settings, watch, before });
    started.process.onMessage((message) => {
      const said = message as ReceiverSays;
      if (said.type === 'received') progress.note(said.line);
    });
    for (const partner of introduced) started.process.send(partner);
    return started;
  };
  const [simulator, receiver] = await Promise.all([
    progress.step(
      'simulator',
      parts.start('simulator', (before?: ReadyProcess<'port'>) =>
        startSimulator(databases.simulatorUrl, { settings, watch, before }),
      ),
    ),
    progress.step('webhook receiver', parts.start('receiver', openReceiver)),
    progress.step('migrations', migrate(databases.ownerUrl)).then(databases.grant),
  ]);
  const simulatorAddress = addressOf(settings, 'simulator', simulator.ports.port);
  for (const { id, name, webhook_secret: secret } of kept) {
    if (secret !== undefined) introduce(receiver, { id, name, secret });
  }
  const secrets = gatewaySecrets(settings);
  const needs: GatewayNeeds = {
    databaseUrl: databases.gatewayUrl,
    natsUrl: nats.url,
    simulatorAddress,
    secrets: secrets.variables,
    authorityFile: gatherAuthorities(dataDir, authorityFile, settings.authorityFiles),
  };
  const gateway = await progress.step(
    'gateway',
    parts.start('gateway', (before?: Awaited<ReturnType<typeof startGateway>>) =>
      startGateway(needs, { settings, watch, before }),
    ),
  );
  const { restPort, grpcPort, adminPort, opsPort } = gateway.ports;
  const restUrl = `http://${addressOf(settings, 'rest', restPort)}`;
  const adminAddress = addressOf(settings, 'admin', adminPort);
  const { ownerUrl } = databases;
  const seeding = seedPartners({ ownerUrl, restUrl, simulatorAddress, secretKey: secrets.secretKey, kept }).then(
    (partners) =>
      registerReceiver({
        adminAddress,
        operatorToken: secrets.operatorToken,
        receiverPort: receiver.ports.port,
        partners,
        kept,
        introduce: (partner) => introduce(receiver, partner),
      }),
  );
  const sandbox: Sandbox = {
    rest_url: restUrl,
    grpc_address: addressOf(settings, 'grpc', grpcPort),
    admin_address: adminAddress,
    ops_url: `http://${addressOf(settings, 'ops', opsPort)}`,
    simulator_address: simulatorAddress,
    nats_url: nats.backOfficeUrl,
    ...(nats.eventsUrl === undefined ? {} : { events_nats_url: nats.eventsUrl }),
    operator_token: secrets.operatorToken,
    second_operator_token: secrets.secondToken,
    role_tokens: secrets.roleTokens,
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
  parts.complete();
  return sandbox;
}

/** The settings that each server of a sandbox starts with. */
interface ServerStart {
  readonly settings: RunSettings;
  readonly progress: StartProgress;
  readonly parts: SandboxParts;
  readonly watch: Watch;
}

/** Returns the settings that a private server of a name starts with. */
function privately({ settings, progress }: ServerStart, name: string) {
  return { dataDir: join(settings.dataDir, name), packagesFolder: join(settings.dataDir, 'packages'), progress };
}

async function openDatabases(start: ServerStart): Promise<{ databases: Databases; version: string; pid?: number }> {
  const { settings, progress } = start;
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
  const server = await openServer(start, 'mariadb', asked === 'mysql' ? 'MySQL' : 'MariaDB', startMariaDb, options);
  const databases = await createDatabases(server.url, options.dataDir);
  return { databases, version: await serverVersion(databases.ownerUrl), pid: server.pid };
}

/** NATS, with the login of the gateway, that of a back office and, if it is private, that of a subscriber of events. */
async function openNats(
  start: ServerStart,
): Promise<{ url: string; backOfficeUrl: string; eventsUrl?: string; pid?: number }> {
  const { settings, progress } = start;
  if (settings.natsUrl !== undefined) {
    if (!(await answersAsNats(settings.natsUrl)))
      progress.note('The NATS of MARINA_NATS_URL does not answer: no events until it does');
    return { url: settings.natsUrl, backOfficeUrl: settings.natsUrl };
  }
  const options = privately(start, 'nats');
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const password = (user: string) => keptSecret(join(options.dataDir, `${user}-password`), 16);
  const passwords = {
    gateway: password('gateway'),
    events: password('events'),
    'back-office': password('back-office'),
  };
  const further = natsAccounts(passwords, settings.given.MARINA_NATS_PREFIX);
  const { url, pid } = await openServer(start, 'nats', 'NATS', startNats, { ...options, further });
  return {
    url: natsLogin(url, 'gateway', passwords),
    backOfficeUrl: natsLogin(url, 'back-office', passwords),
    eventsUrl: natsLogin(url, 'events', passwords),
    pid,
  };
}

/** Starts a private server, which comes back on its port. */
function openServer(
  { progress, parts, watch }: ServerStart,
  name: PartName,
  title: string,
  open: (options: ServerOptions) => Promise<Server>,
  options: ServerOptions,
): Promise<Server> {
  const start = async (before?: Server) => {
    // It has ended; this lets its folder go.
    await before?.stop();
    const server = await open(before === undefined ? options : { ...options, port: before.port, appends: true });
    watch(server.process);
    return server;
  };
  return progress.step(title, parts.start(name, start));
}
