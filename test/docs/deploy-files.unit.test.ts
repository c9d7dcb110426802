import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { before, describe, it } from 'node:test';
import ipaddr from 'ipaddr.js';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig, readDatabaseConfig } from '../../src/gateway/app/config.ts';
import { mayDial } from '../../src/gateway/delivery/webhooks/attempt/addresses.ts';
import { Metrics } from '../../src/gateway/edge/metrics.ts';
import { makeAuthority } from '../../src/sandbox/certificates.ts';
import { readConfig as readSimulatorConfig } from '../../src/simulator/config.ts';
import { listOf, onlyStep, readDockerfile, variablesOf } from '../support/dockerfile.ts';
import { temporaryFolder } from '../support/folders.ts';

const deploy = join(import.meta.dirname, '../../docs/deploy');
const image = readDockerfile(join(deploy, 'Dockerfile')).at(-1);
assert.ok(image !== undefined);
const page = readFileSync(join(deploy, '../operations/deploy.md'), 'utf8');
const imageVariables = variablesOf(image);
const exposed = onlyStep(image, 'EXPOSE').split(' ').map(Number);
/**
 * The time a gateway may take to stop after its set times, with the ten seconds that docs/operations/deploy.md names.
 */
const closingMs = 10_000;

// biome-ignore lint/suspicious/noExplicitAny: a test looks into a file freely, and fails on what is not there.
type Data = any;
type Variables = Record<string, string>;

const folder = temporaryFolder();
/** Examples of the files that settings name, by the end of their path. */
const examples = new Map<string, string>();

before(async () => {
  const authority = await makeAuthority('Example');
  const { cert, key } = await authority.issue(['example.com']);
  for (const name of ['database-ca', 'nats-ca', 'broker-ca']) examples.set(`${name}.pem`, authority.cert);
  for (const name of ['broker-client.pem', 'tls.crt']) examples.set(name, cert);
  for (const name of ['broker-client-key.pem', 'tls.key']) examples.set(name, key);
  examples.set('database-url', 'mysql://user:password@db.internal:3306/marina');
  examples.set('nats-url', 'nats://user:password@nats.internal:4222');
  // As the page makes them.
  const [commands = ''] = /^mkdir -m 700 secrets\n[^`]*?(?=^docker)/m.exec(page) ?? [];
  execFileSync('bash', ['-euc', commands], { cwd: folder });
  for (const name of readdirSync(join(folder, 'secrets'))) {
    examples.set(name, readFileSync(join(folder, 'secrets', name), 'utf8'));
  }
});

/** Settings as a container has them, with the files that they name in a folder of ours. */
function withFiles(variables: Variables, isMounted: (path: string) => boolean): Variables {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => {
      if (!name.endsWith('_FILE')) return [name, value];
      assert.ok(isMounted(value), `${name}: ${value} is mounted`);
      const path = join(folder, value);
      mkdirSync(dirname(path), { recursive: true });
      const example = examples.get(value.split('/').at(-1) ?? '');
      assert.ok(example !== undefined, `${name}: ${value} is known`);
      writeFileSync(path, example);
      return [name, path];
    }),
  );
}

const stopsWithinMs = ({ drainMs, shutdownTimeoutMs }: { drainMs: number; shutdownTimeoutMs: number }) =>
  drainMs + 2 * shutdownTimeoutMs + closingMs;

describe('docs/deploy/Dockerfile', () => {
  it('exposes the ports that others than the machine itself reach, as they are set', () => {
    const read = readConfig({ ...imageVariables, ...needed() });
    const open = [
      [read.host, read.restPort],
      [read.host, read.grpcPort],
      [read.adminHost, read.adminPort],
      [read.opsHost, read.opsPort],
    ].flatMap(([host, port]) => (host === '0.0.0.0' ? [Number(port)] : []));
    assert.deepEqual(exposed, open);
  });

  it('asks its operations port whether it is alive, in TLS if the port speaks TLS', async () => {
    const [node, ...script] = listOf(onlyStep(image, 'HEALTHCHECK'));
    assert.equal(node, 'node');
    const { cert, key } = await (await makeAuthority('Example')).issue(['gateway.example.com']);
    for (const [isTls, answers, code] of [
      [false, 200, 0],
      [false, 503, 1],
      [true, 200, 0],
      [true, 503, 1],
    ] as const) {
      const answer: RequestListener = ({ url }, response) => response.writeHead(url === '/livez' ? answers : 404).end();
      const server = isTls ? createTlsServer({ cert, key }, answer) : createServer(answer);
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const env = {
        MARINA_OPS_HOST: '0.0.0.0',
        MARINA_OPS_PORT: String(port),
        ...(isTls ? { MARINA_OPS_TLS_CERT_FILE: '/somewhere' } : {}),
      };
      const [exited] = await once(spawn(process.execPath, script, { env, stdio: 'inherit' }), 'exit');
      server.close();
      assert.equal(exited, code, `${isTls ? 'TLS' : 'plain'}, ${answers}`);
    }
  });
});

/** The objects of a file of Kubernetes. */
const objectsIn = (path: string): Data[] =>
  parseAllDocuments(readFileSync(join(deploy, path), 'utf8')).map((document) => document.toJS());

describe('the images of docs/deploy', () => {
  const digest = /^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/;
  const kustomization: Data = parse(readFileSync(join(deploy, 'kustomization.yaml'), 'utf8'));
  const manifests = [...kustomization.resources, 'nats.yaml'].flatMap(objectsIn);
  const ofPods = manifests.flatMap(({ spec }) =>
    [...(spec?.template?.spec.containers ?? []), ...(spec?.template?.spec.initContainers ?? [])].map(
      (container: Data) => container.image,
    ),
  );

  it('images of others are named by a digest, the same one wherever the image is used', () => {
    const compose: Data = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'), { merge: true });
    const ofCompose = Object.values<Data>(compose.services).flatMap(({ image: name }) => (name ? [name] : []));
    const stages = readDockerfile(join(deploy, 'Dockerfile')).map(({ from }) => from);
    const others = [...stages, ...ofCompose, ...ofPods].filter((name) => name !== 'marina');
    assert.ok(others.length >= 6, `${others}`);
    for (const name of others) assert.match(name, digest);
    const names = [...new Set(others)].map((name) => name.split('@')[0]);
    assert.equal(new Set(names).size, names.length, 'an image has one digest');
    for (const name of names) assert.ok(page.includes(String(name)), `the page has ${name}`);
  });

  it('our image is named in one place, which starts no pod until a digest is set there', () => {
    const folders = readdirSync(join(deploy, 'kubernetes')).map((name) => `kubernetes/${name}`);
    assert.deepEqual(kustomization.resources.toSorted(), folders.toSorted());
    assert.deepEqual([...new Set(ofPods.filter((name) => !digest.test(name)))], ['marina']);
    const [{ name, digest: unset, newTag }] = kustomization.images;
    assert.deepEqual([kustomization.images.length, name, newTag], [1, 'marina', undefined]);
    assert.doesNotMatch(unset, /^sha256:[0-9a-f]{64}$/);
  });

  it('our image has the digest that the page’s command sets', () => {
    const [command = ''] = /^sed -i -E .*kustomization\.yaml$/m.exec(page) ?? [];
    const own = join(folder, 'docs/deploy');
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, 'kustomization.yaml'), readFileSync(join(deploy, 'kustomization.yaml')));
    const set = `sha256:${'4f'.repeat(32)}`;
    execFileSync('bash', ['-euc', command], { cwd: folder, env: { ...process.env, digest: set } });
    const { images, ...rest } = parse(readFileSync(join(own, 'kustomization.yaml'), 'utf8'));
    assert.deepEqual(images, [{ name: 'marina', newName: 'registry.example.com/marina', digest: set }]);
    const { images: _, ...before } = kustomization;
    assert.deepEqual(rest, before);
  });

  it('are applied by labels that every object has, each once', () => {
    const selectors = [...page.matchAll(/^kubectl apply -k docs\/deploy -l '?role(?:=| in \()([\w, ]+)/gm)];
    const roles = selectors.flatMap(([, names = '']) => names.split(', '));
    assert.deepEqual(roles.toSorted(), ['api', 'migrate', 'settings', 'worker']);
    for (const { kind, metadata } of kustomization.resources.flatMap(objectsIn)) {
      assert.ok(roles.includes(metadata.labels?.role), `${kind} ${metadata.name}`);
    }
  });
});

describe('docs/deploy/marina.service', () => {
  it('waits for a stop as long as it can take', () => {
    const unit = readFileSync(join(deploy, 'marina.service'), 'utf8');
    const waitsMs = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) * 1_000;
    assert.ok(waitsMs > stopsWithinMs(readConfig(needed())), `${waitsMs} ms`);
  });
});

describe('docs/deploy/compose.yaml', () => {
  const compose: Data = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'), { merge: true });
  const services: [name: string, service: Data][] = Object.entries(compose.services);
  const gateways = services.filter(([name]) => name.startsWith('gateway-'));
  const mounted = (service: Data) => (path: string) => service.secrets.includes(path.replace('/run/secrets/', ''));

  it('has services that wait for others which are there, and use only what is declared', () => {
    for (const [name, service] of services) {
      for (const [other, { condition }] of Object.entries<Data>(service.depends_on ?? {})) {
        const needs = compose.services[other];
        assert.ok(needs !== undefined, `${name} needs ${other}`);
        if (condition === 'service_healthy') assert.ok(needs.healthcheck?.test, `${other} has a health check`);
        if (condition === 'service_completed_successfully') assert.equal(needs.restart, 'no', `${other} ends`);
      }
      for (const secret of service.secrets ?? [])
        assert.ok(compose.secrets[secret] !== undefined, `${name}: ${secret}`);
      for (const { source } of service.configs ?? [])
        assert.ok(compose.configs[source] !== undefined, `${name}: ${source}`);
      for (const volume of service.volumes ?? []) {
        const [from = ''] = volume.split(':');
        if (from.startsWith('.')) assert.ok(existsSync(join(deploy, from)), from);
        else assert.ok(from in compose.volumes, from);
      }
    }
    assert.deepEqual(
      Object.keys(compose.secrets).filter((name) => !services.some(([, { secrets = [] }]) => secrets.includes(name))),
      [],
    );
  });

  it('gives two gateways settings that they take, and time to stop', () => {
    assert.equal(gateways.length, 2);
    for (const [name, service] of gateways) {
      const config = readConfig({ ...imageVariables, ...withFiles(service.environment, mounted(service)) });
      assert.ok(Number.parseInt(service.stop_grace_period, 10) * 1_000 > stopsWithinMs(config), name);
      const listening = [config.restPort, config.grpcPort, config.adminPort, config.opsPort];
      assert.deepEqual([config.host, config.adminHost, config.opsHost], ['0.0.0.0', '0.0.0.0', '0.0.0.0']);
      assert.deepEqual(
        service.ports.map((port: string) => Number(port.split(':').at(-1))),
        listening,
      );
      assert.ok(service.ports.every((port: string) => port.startsWith('127.0.0.1:')));
      const { port } = readSimulatorConfig({
        ...compose.services.simulator.environment,
        MARINA_SIMULATOR_DATABASE_URL: 'mysql://simulator',
      });
      assert.equal(config.brokerAddress, `simulator:${port}`);
    }
    const published = gateways.flatMap(([, { ports }]) => ports.map((port: string) => port.split(':')[1]));
    assert.equal(new Set(published).size, published.length);
  });

  it('runs what is ours without rights, on a root that cannot be written to, and without core dumps', () => {
    for (const [name, service] of services.filter(([, { image: of }]) => of === 'marina')) {
      assert.deepEqual(
        [service.read_only, service.cap_drop, service.ulimits.core, service.user],
        [true, ['ALL'], 0, '1000:1000'],
        name,
      );
      assert.equal(service.mem_limit, service.memswap_limit, `${name} has no swap`);
    }
  });

  it('runs what is beside gateways without rights too, as a user, on a root that cannot be written to', () => {
    for (const [name, service] of services) {
      assert.deepEqual(
        [service.read_only, service.cap_drop, service.cap_add, service.security_opt, service.ulimits.core],
        [true, ['ALL'], undefined, ['no-new-privileges:true'], 0],
        name,
      );
      assert.match(service.user, /^[1-9]\d*:[1-9]\d*$/, name);
      assert.match(service.mem_limit, /^\d+[mg]$/, name);
      assert.equal(service.privileged ?? service.network_mode ?? service.pid, undefined, name);
    }
  });

  it('migrates as the owner before any gateway starts', () => {
    const { migrate, rights } = compose.services;
    readDatabaseConfig({ ...imageVariables, ...withFiles(migrate.environment, mounted(migrate)) });
    assert.ok('migrate' in rights.depends_on);
    for (const [, service] of gateways) assert.ok('rights' in service.depends_on);
    const file = /exec node --import tsx (\S+)/.exec(compose.services.simulator.command.at(-1))?.[1] ?? '';
    assert.ok(existsSync(join(deploy, '../..', file)), file);
  });

  it('needs the secrets that docs/operations/deploy.md makes', () => {
    const files = Object.values<Data>(compose.secrets).map(({ file }) => file.replace('./secrets/', ''));
    assert.deepEqual(files.toSorted(), readdirSync(join(folder, 'secrets')));
  });
});

describe('docs/deploy/kubernetes', () => {
  const names = readdirSync(join(deploy, 'kubernetes'));
  const objects: Data[] = names.flatMap((name) =>
    parseAllDocuments(readFileSync(join(deploy, 'kubernetes', name), 'utf8')).map((document) => document.toJS()),
  );
  const ofKind = (kind: string) => objects.filter((each) => each.kind === kind);
  const deployments = ofKind('Deployment');
  const templates: Data[] = [...deployments, ...ofKind('Job')].map(({ spec }) => spec.template);
  const settings: Variables = ofKind('ConfigMap')[0].data;

  /** A container's settings, with the files that they name where its pod mounts them. */
  const settingsOf = ({ spec }: Data): Variables => {
    const [container] = spec.containers;
    const own = Object.fromEntries((container.env ?? []).map(({ name, value }: Data) => [name, value]));
    const paths = container.volumeMounts.map(({ mountPath }: Data) => mountPath);
    const all = { ...settings, ...own };
    const isMounted = (path: string) => paths.includes(dirname(path));
    if (spec.restartPolicy !== 'Never') return withFiles(all, isMounted);
    // Migrating reads the settings of the database alone.
    return withFiles(
      Object.fromEntries(Object.entries(all).filter(([name]) => name.includes('_DATABASE_'))),
      isMounted,
    );
  };
  const matches = (labels: Variables, template: Data) =>
    Object.entries(labels).every(([name, value]) => template.metadata.labels[name] === value);
  const selected = (labels: Variables) => templates.filter((template) => matches(labels, template));

  it('has every object in a version of its kind that clusters serve', () => {
    const versions = objects.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`);
    assert.deepEqual(
      [...new Set(versions)].sort(),
      [
        'apps/v1 Deployment',
        'autoscaling/v2 HorizontalPodAutoscaler',
        'batch/v1 Job',
        'networking.k8s.io/v1 NetworkPolicy',
        'policy/v1 PodDisruptionBudget',
        'v1 ConfigMap',
        'v1 Service',
      ].sort(),
    );
  });

  it('gives gateways settings that they take, in live, and between them every role', () => {
    const configs = deployments.map(({ spec }) => readConfig({ ...imageVariables, ...settingsOf(spec.template) }));
    assert.deepEqual(configs.flatMap((config) => [...config.roles]).sort(), ['api', 'webhooks', 'worker']);
    assert.ok(configs.every(({ environment }) => environment === 'live'));
    const [job] = ofKind('Job');
    readDatabaseConfig({ ...imageVariables, ...settingsOf(job.spec.template) });
  });

  it('sets no variables that are no settings, which would stop the start', () => {
    for (const { spec } of templates) assert.equal(spec.enableServiceLinks, false);
  });

  it('runs containers without root or rights, on a root that cannot be written to', () => {
    for (const { spec } of templates) {
      assert.equal(spec.automountServiceAccountToken, false);
      assert.deepEqual(
        [spec.securityContext.runAsNonRoot, spec.securityContext.seccompProfile.type],
        [true, 'RuntimeDefault'],
      );
      for (const { securityContext: own, volumeMounts } of spec.containers) {
        assert.deepEqual(
          [own.allowPrivilegeEscalation, own.readOnlyRootFilesystem, own.capabilities.drop],
          [false, true, ['ALL']],
        );
        for (const { name } of volumeMounts)
          assert.ok(
            spec.volumes.some((volume: Data) => volume.name === name),
            name,
          );
      }
      for (const { secret } of spec.volumes) {
        // Readable by the group of `fsGroup`, and by nobody else.
        assert.equal(secret.defaultMode, 0o440);
        assert.match(page, new RegExp(`^kubectl create secret (?:generic|tls) ${secret.secretName} `, 'm'));
      }
    }
  });

  it('runs NATS beside them in the same way, where gateways and subscribers alone reach it', () => {
    const beside = objectsIn('nats.yaml');
    const [nats] = beside.flatMap(({ kind, spec }) => (kind === 'Deployment' ? [spec.template.spec] : []));
    assert.deepEqual([nats.enableServiceLinks, nats.automountServiceAccountToken], [false, false]);
    assert.deepEqual(
      [nats.securityContext.runAsNonRoot, nats.securityContext.seccompProfile.type],
      [true, 'RuntimeDefault'],
    );
    for (const { securityContext: own, resources } of nats.containers) {
      assert.deepEqual(
        [own.allowPrivilegeEscalation, own.readOnlyRootFilesystem, own.capabilities.drop, resources.limits.memory],
        [false, true, ['ALL'], '512Mi'],
      );
    }
    const [policy] = beside.flatMap(({ kind, spec }) => (kind === 'NetworkPolicy' ? [spec] : []));
    assert.deepEqual([policy.podSelector.matchLabels, policy.egress], [{ app: 'nats' }, []]);
    assert.deepEqual(policy.policyTypes, ['Ingress', 'Egress']);
    for (const { from } of policy.ingress) for (const each of from) assert.ok(each.podSelector.matchLabels);
  });

  it('needs the files that docs/operations/deploy.md puts into secrets', () => {
    for (const [name, value] of Object.entries(settings)) {
      const file = value.split('/').at(-1) ?? '';
      if (name.endsWith('_FILE') && !file.startsWith('tls.')) assert.ok(page.includes(`--from-file=${file}`), file);
    }
  });

  it('asks the operations port for health, less often than a gateway drains', () => {
    for (const { spec } of deployments.map((each) => each.spec.template)) {
      const [container] = spec.containers;
      const config = readConfig({ ...imageVariables, ...settingsOf({ spec }) });
      const { port } = container.readinessProbe.httpGet;
      const found = container.ports.find(({ name }: Data) => name === port);
      assert.equal(found?.containerPort, config.opsPort);
      const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
      assert.deepEqual(
        probes.map(({ httpGet }) => [httpGet.path, httpGet.port, httpGet.scheme]),
        [
          ['/livez', port, undefined],
          ['/livez', port, undefined],
          ['/readyz', port, undefined],
        ],
      );
      const { periodSeconds, failureThreshold } = container.readinessProbe;
      assert.ok(periodSeconds * failureThreshold * 1_000 < config.drainMs);
      const [, waits] = container.lifecycle.preStop.exec.command;
      const stopsMs = Number(waits) * 1_000 + stopsWithinMs(config);
      assert.ok(spec.terminationGracePeriodSeconds * 1_000 > stopsMs, `${stopsMs} ms`);
    }
  });

  it('selects pods that there are', () => {
    for (const { spec } of deployments) assert.ok(matches(spec.selector.matchLabels, spec.template));
    for (const { spec } of [...ofKind('PodDisruptionBudget')]) {
      assert.equal(selected(spec.selector.matchLabels).length, 1);
    }
    for (const { spec } of ofKind('NetworkPolicy')) {
      const pods = selected(spec.podSelector.matchLabels);
      assert.ok(pods.length > 0);
      const open = pods.flatMap((pod) =>
        (pod.spec.containers[0].ports ?? []).map(({ containerPort }: Data) => containerPort),
      );
      for (const { ports } of spec.ingress ?? []) {
        for (const { port } of ports) assert.ok(open.includes(port), `port ${port}`);
      }
    }
    for (const { spec } of ofKind('Service')) {
      const [pod] = selected(spec.selector);
      const open = pod.spec.containers[0].ports.map(({ name }: Data) => name);
      for (const { targetPort } of spec.ports) assert.ok(open.includes(targetPort), targetPort);
    }
  });

  it('lets gateways reach the broker where it is', () => {
    const ports = ofKind('NetworkPolicy').flatMap(({ spec }) =>
      (spec.egress ?? []).flatMap((rule: Data) => rule.ports),
    );
    const broker = Number(settings.MARINA_BROKER_ADDRESS?.split(':')[1]);
    for (const port of [broker, 3306, 4222, 443, 53])
      assert.ok(
        ports.some((each: Data) => each.port === port),
        `${port}`,
      );
  });

  it('lets gateways reach addresses that are named, and webhooks those only that the gateway dials', () => {
    const rules: Data[] = ofKind('NetworkPolicy').flatMap(({ metadata, spec }) =>
      (spec.egress ?? []).map((rule: Data) => ({ of: metadata.name, ...rule })),
    );
    const blocks: Data[] = [];
    for (const { of, to, ports } of rules) {
      assert.ok(to?.length > 0 && ports?.length > 0, `${of}: a rule without addresses or ports is for all`);
      for (const { ipBlock, podSelector } of to) {
        if (ipBlock === undefined) assert.ok(Object.keys(podSelector.matchLabels).length > 0, of);
        else if (of === 'marina-worker') blocks.push(ipBlock);
        else assert.match(ipBlock.cidr, /^192\.0\.2\.\d+\/32$/, 'one server, to be changed');
      }
    }
    const isIn = (address: string, cidr: string) => {
      const [parsed, range] = [ipaddr.parse(address), ipaddr.parseCIDR(cidr)];
      return parsed.kind() === range[0].kind() && parsed.match(range);
    };
    const isAllowed = (address: string) =>
      blocks.some(({ cidr, except }) => isIn(address, cidr) && !except.some((each: string) => isIn(address, each)));
    const around = blocks.flatMap(({ cidr, except }) => [cidr, ...except]).flatMap(addressesAround);
    for (const address of around.filter((each) => each.includes('.'))) {
      assert.equal(isAllowed(address), mayDial(address, { allowLoopback: false }), address);
    }
    const dialled = [...around, ...specialAddresses].filter((each) => isAllowed(each));
    for (const address of dialled) assert.ok(mayDial(address, { allowLoopback: false }), address);
    for (const address of ['8.8.8.8', '2606:4700::1111']) assert.ok(isAllowed(address), address);
  });

  it('scales the processes that serve partners by a metric that there is', () => {
    const [{ spec }] = ofKind('HorizontalPodAutoscaler');
    const target = deployments.find(({ metadata }) => metadata.name === spec.scaleTargetRef.name);
    assert.equal(target?.spec.replicas, undefined, 'nothing else says how many there are');
    assert.equal(target?.spec.template.metadata.labels.role, 'api');
    const [{ pods }] = spec.metrics;
    assert.ok(new Metrics().registry.getMetricsAsArray().some(({ name }) => name === pods.metric.name));
  });
});

/** Addresses that no webhook goes to, of kinds that differ. */
const specialAddresses = ['::1', '::', 'fc00::1', 'fe80::1', 'ff02::1', '64:ff9b::a00:1', '2001::1', '2002:a00:1::1'];

/** The first and the last address of a range, and those beside them. */
function addressesAround(cidr: string): string[] {
  const [address, length] = ipaddr.parseCIDR(cidr);
  const bits = address.kind() === 'ipv4' ? 32 : 128;
  const size = 1n << BigInt(bits - length);
  const first = BigInt(`0x${Buffer.from(address.toByteArray()).toString('hex')}`) & ~(size - 1n);
  return [first - 1n, first, first + size - 1n, first + size].flatMap((each) => {
    if (each < 0n || each >= 1n << BigInt(bits)) return [];
    const hex = each.toString(16).padStart(bits / 4, '0');
    return [ipaddr.fromByteArray([...Buffer.from(hex, 'hex')]).toString()];
  });
}

function needed(): Variables {
  return {
    MARINA_DATABASE_URL: 'mysql://user:password@mysql:3306/marina',
    MARINA_NATS_URL: 'nats://nats:4222',
    MARINA_BROKER_ADDRESS: 'broker:7443',
    MARINA_SECRET_KEY: '42'.repeat(32),
  };
}
