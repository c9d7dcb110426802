import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { type KeptProcess, sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { temporaryFolder } from '../folders.ts';

/** Where a server of a cluster runs. */
export interface Machine {
  /** The address that clients of this process use. */
  readonly clients: string;
  /** The address that the other machines use. */
  readonly peers: string;
  /** Runs a program there. */
  command(program: string, args: readonly string[]): { command: string; args: string[] };
  /** Cuts it off from the other machines, or from clients too: what is sent to it or by it is lost. */
  cut(from: 'peers' | 'all'): void;
  join(): void;
}

const holdForSeconds = '7200';

/**
 * Machines of their own on this machine, as network namespaces: each has one network to the others and one to clients. They
 * end with this process.
 */
export class TestNetwork {
  private constructor(
    readonly machines: readonly Machine[],
    private readonly holders: readonly KeptProcess[],
  ) {}

  /** Makes so many, or says why it cannot: it takes root and the programs of iproute2. */
  static async start(count: number): Promise<TestNetwork | string> {
    const holders: KeptProcess[] = [];
    try {
      for (let made = 0; made <= count; made += 1) holders.push(await hold());
      const [hub, ...others] = holders as [KeptProcess, ...KeptProcess[]];
      const inHub = (...args: string[]) => ip(hub.pid, args);
      const peers = chooseNetwork();
      const clients = chooseNetwork();
      for (const bridge of ['peers', 'clients']) {
        inHub('link', 'add', bridge, 'type', 'bridge');
        inHub('link', 'set', bridge, 'up');
      }
      const own = `marina${hub.pid}`;
      inHub('link', 'add', 'own', 'type', 'veth', 'peer', 'name', own, 'netns', String(process.pid));
      inHub('link', 'set', 'own', 'master', 'clients', 'up');
      execFileSync('ip', ['address', 'add', `${clients}.254/24`, 'dev', own]);
      execFileSync('ip', ['link', 'set', own, 'up']);
      const machines = others.map(({ pid }, index): Machine => {
        ip(pid, ['link', 'set', 'lo', 'up']);
        const port = (bridge: string) => `${bridge}${index + 1}`;
        for (const [bridge, network] of [
          ['peers', peers],
          ['clients', clients],
        ] as const) {
          inHub('link', 'add', port(bridge), 'type', 'veth', 'peer', 'name', bridge, 'netns', String(pid));
          inHub('link', 'set', port(bridge), 'master', bridge, 'up');
          ip(pid, ['address', 'add', `${network}.${index + 1}/24`, 'dev', bridge]);
          ip(pid, ['link', 'set', bridge, 'up']);
        }
        return {
          clients: `${clients}.${index + 1}`,
          peers: `${peers}.${index + 1}`,
          command: (program, args) => ({ command: 'nsenter', args: [`--net=/proc/${pid}/ns/net`, program, ...args] }),
          cut: (from) => {
            for (const bridge of from === 'all' ? ['peers', 'clients'] : ['peers'])
              inHub('link', 'set', port(bridge), 'nomaster');
          },
          join: () => {
            for (const bridge of ['peers', 'clients']) inHub('link', 'set', port(bridge), 'master', bridge);
          },
        };
      });
      return new TestNetwork(machines, holders);
    } catch (error) {
      await Promise.all(holders.map((holder) => holder.kill()));
      return `no network namespaces: ${(error as Error).message.split('\n')[0]}`;
    }
  }

  /** To be called when nothing runs there any more. */
  async stop(): Promise<void> {
    await Promise.all(this.holders.map((holder) => holder.kill()));
  }
}

/** All on 127.0.0.1, where none can be cut off. */
export function oneMachine(whyNoNetwork: string): Machine {
  const refuse = () => {
    throw new Error(whyNoNetwork);
  };
  return {
    clients: '127.0.0.1',
    peers: '127.0.0.1',
    command: (program, args) => ({ command: program, args: [...args] }),
    cut: refuse,
    join: refuse,
  };
}

/** A namespace lasts as long as a process in it. */
async function hold(): Promise<KeptProcess> {
  return sharedKeeper().start({
    name: 'network namespace',
    command: 'unshare',
    args: ['--net', 'sleep', holdForSeconds],
    logPath: `${temporaryFolder()}/network.log`,
    stopSignal: 'SIGKILL',
  });
}

function ip(pid: number, args: readonly string[]): void {
  execFileSync('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Of those for private use, one that this machine does not use. */
function chooseNetwork(): string {
  const used = Object.values(networkInterfaces()).flatMap(
    (addresses) => addresses?.map(({ address }) => address) ?? [],
  );
  for (;;) {
    const network = `10.${200 + Math.floor(Math.random() * 50)}.${Math.floor(Math.random() * 250)}`;
    if (!used.some((address) => address.startsWith(`${network}.`))) return network;
  }
}
