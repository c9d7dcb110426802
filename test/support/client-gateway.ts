import { Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import { adminClient } from './admin.ts';
import { eventually } from './eventually.ts';
import { FaultProxy } from './fault-proxy.ts';
import { startGateway, type TestGateway, type TestPartner } from './gateway.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/** A gateway as the tests of clients need it: it can lose answers, and its webhooks arrive. */
export interface ClientGateway {
  readonly gateway: TestGateway;
  readonly receiver: WebhookReceiver;
  readonly admin: ReturnType<typeof adminClient>;
  readonly baseUrl: string;
  /** The same gateway. The first answer to each Idempotency-Key that begins with `lose-` is lost on the way. */
  readonly lossyUrl: string;
  readonly proxy: FaultProxy;
  /** Registers an endpoint of the receiver for a partner, and returns its secret. */
  register(partner: TestPartner, path: string): Promise<string>;
  /** Passes all that an endpoint receives to a program of this machine that speaks plain HTTP, as a proxy before it would. */
  passOn(path: string, port: number): void;
  stop(): Promise<void>;
}

export async function startClientGateway(): Promise<ClientGateway> {
  const receiver = await WebhookReceiver.start();
  const gateway = await startGateway(receiver.variables);
  const admin = adminClient(gateway.app.adminPort);
  const baseUrl = `http://127.0.0.1:${gateway.app.restPort}`;
  const proxy = await FaultProxy.start(`127.0.0.1:${gateway.app.restPort}`);
  const lost = new Set<string>();
  const losing = new WeakSet();
  proxy.onBytes = (link, direction, bytes) => {
    const key = /^idempotency-key: (lose-\S+)/im.exec(bytes.toString('latin1'))?.[1];
    if (direction === 'toServer' && key !== undefined && !lost.has(key)) {
      lost.add(key);
      losing.add(link);
    }
    if (direction === 'toClient' && losing.has(link)) link.reset();
  };
  return {
    gateway,
    receiver,
    admin,
    baseUrl,
    lossyUrl: `http://${proxy.address}`,
    proxy,
    async register({ id: partnerId }, path) {
      const { secret } = await admin.webhooks.registerEndpoint({ partnerId, url: receiver.url(path) }, admin.options);
      return secret;
    },
    passOn(path, port) {
      receiver.reply(path, ({ headers, body }) => {
        const { host: _, connection: __, 'content-length': ___, ...passed } = headers;
        const pass = () => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: passed, body });
        // The program ends when it has seen all it waits for. Later deliveries have nobody to go to.
        eventually(pass).catch(() => undefined);
        return 200;
      });
    },
    async stop() {
      admin.close();
      await proxy.close();
      await gateway.stop();
      await receiver.close();
    },
  };
}

/** Partners whose calls fail in each way there is, by what they lack. */
export interface FailingPartners {
  readonly good: TestPartner;
  /** Its key may only read. */
  readonly reader: TestPartner;
  /** It may place one naira a day. */
  readonly small: TestPartner;
  /** It may make two requests a second. */
  readonly slow: TestPartner;
}

export async function failingPartners(gateway: TestGateway): Promise<FailingPartners> {
  return {
    good: await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } }),
    reader: await gateway.newPartner({ scopes: [Scope.READ] }),
    small: await gateway.newPartner({ limits: { ordersKoboPerDay: 100n } }),
    slow: await gateway.newPartner({ limits: { requestsPerSecond: 2, requestsBurst: 2 } }),
  };
}
