import { Advice } from './advice.ts';
import { isPortTaken, readGreeting } from './ports.ts';
import { type PortName, portVariables, type RunSettings } from './settings.ts';

/** The addresses and ports on which a sandbox is opened. */
type Opened = Pick<RunSettings, 'hosts' | 'ports'>;

/** Whether one of the servers named answers now; a gateway works on without them, and catches up. */
export async function answersAsNats(urls: string): Promise<boolean> {
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
export async function requirePorts(settings: Opened): Promise<void> {
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
export function addressOf(settings: Pick<Opened, 'hosts'>, name: PortName, port: number): string {
  const host = settings.hosts[name];
  return `${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host}:${port}`;
}
