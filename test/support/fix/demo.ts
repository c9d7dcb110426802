/**
 * `make demo BROKER=fix`: the life of one order, from a partner's call to an exchange and back, with the FIX messages beside it.
 * Gateway, adapter, the exchange's FIX gateway (made with QuickFIX) and their servers run for it alone, and leave nothing behind.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { fixMigrations } from '../../../migrations/fix/index.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { explain } from '../../../src/sandbox/advice.ts';
import { check } from '../../../src/sandbox/demo-failure.ts';
import { type Chapter, Screen } from '../../../src/sandbox/demo-screen.ts';
import { until } from '../../../src/sandbox/demo-until.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { SandboxParts } from '../../../src/sandbox/parts.ts';
import { freePort } from '../../../src/sandbox/ports.ts';
import { progressLines, type StartProgress } from '../../../src/sandbox/progress.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox-file.ts';
import { startMariaDb, startNats } from '../../../src/sandbox/servers.ts';
import { readSettings } from '../../../src/sandbox/settings.ts';
import { answered, type Marina, marinaClient } from '../../../src/site/snippets/client.mts';
import { temporaryFolder } from '../folders.ts';
import { type Acceptor, startAcceptor } from '../quickfix.ts';
import { startAdapterProcess } from './adapter.ts';
import { besides, fixLines } from './demo-lines.ts';

const ordered = { symbol: 'DANGCEM', side: 'buy', quantity: 300, type: 'limit', price_kobo: 48_050 } as const;
const price = '480.50';

// Nobody reads on, as after `make demo | head`.
process.stdout.on('error', () => process.exit(1));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(130));
demo().then(end, (error: unknown) => {
  process.stderr.write(`\nThe demo did not come to its end. ${explain(error)}\n`);
  return end(1);
});

async function end(code: number): Promise<never> {
  await sharedKeeper().close();
  process.exit(code);
}

async function demo(): Promise<number> {
  let isStarting = true;
  const lines = progressLines((text) => isStarting && process.stdout.write(text));
  const progress: StartProgress = { ...lines, note: (line) => isStarting && lines.note(line) };
  const screen = new Screen(process.stdout, process.env);
  const { sandbox, acceptor, parts } = await startChain(progress);
  isStarting = false;
  try {
    const life = await Life.open(sandbox, acceptor, screen);
    const failure = await screen.play(life.chapters());
    if (failure !== undefined) throw failure;
    return 0;
  } finally {
    parts.stop();
  }
}

/** Starts a sandbox whose broker is the FIX adapter, and what the adapter needs. */
async function startChain(
  progress: StartProgress,
): Promise<{ sandbox: Sandbox; acceptor: Acceptor; parts: SandboxParts }> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const server = (name: string) => ({ dataDir: join(folder, name), disposable: true, progress });
  const [mariadb, nats, acceptor] = await Promise.all([
    progress.step('MariaDB', startMariaDb(server('mariadb'))),
    progress.step('NATS', startNats(server('nats'))),
    progress.step("an exchange's FIX gateway, of QuickFIX", startAcceptor({ target: 'MARINA' })),
  ]);
  await acceptor.onOrder({ as: 'rest' });
  const [port, simulatorPort] = [await freePort(), await freePort()];
  await progress.step('FIX adapter', startAdapter(mariadb.url, { acceptor, port, simulatorPort }));
  const settings = readSettings({
    MARINA_DATA_DIR: folder,
    MARINA_DATABASE_URL: databaseOf(mariadb.url, 'marina'),
    MARINA_NATS_URL: nats.url,
    MARINA_BROKER_ADDRESS: `127.0.0.1:${port}`,
    MARINA_SIMULATOR_PORT: String(simulatorPort),
    ...{ MARINA_REST_PORT: '0', MARINA_GRPC_PORT: '0', MARINA_ADMIN_PORT: '0', MARINA_OPS_PORT: '0' },
  });
  const fail = (error: unknown) => {
    process.stderr.write(`\n${explain(error)}\n`);
    void end(1);
  };
  const parts = new SandboxParts({ dataDir: folder, progress, fail, restarted: () => {} });
  return { sandbox: await startSandbox(settings, progress, parts, () => {}), acceptor, parts };
}

async function startAdapter(
  serverUrl: string,
  { acceptor, port, simulatorPort }: { acceptor: Acceptor; port: number; simulatorPort: number },
): Promise<void> {
  const connection = await createConnection({ uri: serverUrl });
  await connection.query('CREATE DATABASE marina_fix');
  await connection.end();
  const url = databaseOf(serverUrl, 'marina_fix');
  await migrate(url, fixMigrations);
  const adapter = await startAdapterProcess({
    MARINA_FIX_DATABASE_URL: url,
    MARINA_FIX_ADDRESS: `127.0.0.1:${acceptor.port}`,
    MARINA_FIX_BACK_OFFICE_ADDRESS: `127.0.0.1:${simulatorPort}`,
    MARINA_FIX_PORT: String(port),
    MARINA_FIX_MASS_STATUS: 'true',
    MARINA_FIX_ORDER_FIELDS: '453=1|448=FIRM|447=D|452=1',
  });
  const { orders, submissions } = await adapter.active();
  orders.close();
  submissions.close();
}

function databaseOf(serverUrl: string, name: string): string {
  return Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
}

/** One order, step by step. */
class Life {
  #id = '';
  #shown = 0;
  #partnerSaw: string[] = [];
  #cursor: string | undefined;
  #last: { readonly state: string; readonly filled_quantity: number } | undefined;

  private constructor(
    private readonly screen: Screen,
    private readonly acceptor: Acceptor,
    private readonly marina: Marina,
    private readonly account: string,
  ) {}

  static async open(sandbox: Sandbox, acceptor: Acceptor, screen: Screen): Promise<Life> {
    const [partner] = sandbox.partners;
    if (partner === undefined) throw new Error('the sandbox has no partner');
    const life = new Life(screen, acceptor, marinaClient(sandbox.rest_url, partner.key), partner.account);
    await until(screen, 'the session with the exchange', async () =>
      (await acceptor.state()).isLoggedOn &&
      acceptor.messages().some(({ message }) => message.includes('\u000135=AF\u0001'))
        ? true
        : undefined,
    );
    return life;
  }

  chapters(): Chapter[] {
    return [
      {
        title: 'The session: Logon, a test of the line, and a question about all orders',
        shows: 'a FIX session that came up',
        run: () => this.#show(),
      },
      {
        title: `A partner buys ${ordered.quantity} ${ordered.symbol}: stored, then sent once`,
        shows: 'an order that the exchange accepted',
        run: () => this.#place(),
      },
      {
        title: 'The exchange trades 100 of them',
        shows: 'a trade that is an event',
        run: () => this.#trade(),
      },
      {
        title:
          'The line breaks, and 50 trade meanwhile: the exchange sends the trade again, and nothing of ours is sent twice',
        shows: 'a trade that was not lost with the line',
        run: () => this.#breakLine(),
      },
      {
        title: 'The partner cancels the rest',
        shows: 'an order cancelled, with 150 shares filled',
        run: () => this.#cancel(),
      },
    ];
  }

  async #place(): Promise<void> {
    const { data: order, response } = await answered(
      this.marina.POST('/v1/orders', {
        params: { header: { 'Idempotency-Key': randomUUID() } },
        body: { ...ordered, account: this.account },
      }),
    );
    this.#id = order.id;
    this.#partnerSaw.push('POST /v1/orders', `→ ${response.status} ${order.id}`, `  ${order.state}`);
    await this.#event('pending', 0);
    await this.#show();
  }

  async #trade(): Promise<void> {
    await this.acceptor.fill(this.#id, { quantity: 100, price });
    await this.#event('partially_filled', 100);
    await this.#show();
  }

  async #breakLine(): Promise<void> {
    const { connections } = await this.acceptor.state();
    await this.acceptor.disconnect();
    await this.acceptor.fill(this.#id, { quantity: 50, price });
    const { state, filled_quantity: filled } = await until(this.screen, 'the trade that was missed', async () => {
      const { data: order } = await answered(
        this.marina.GET('/v1/orders/{id}', { params: { path: { id: this.#id } } }),
      );
      return order.filled_quantity === 150 ? order : undefined;
    });
    await this.#event('partially_filled', 150);
    await until(this.screen, 'the new connection', async () =>
      (await this.acceptor.state()).connections > connections ? true : undefined,
    );
    this.#partnerSaw.push(`GET /v1/orders/${this.#id}`, `→ ${state}, ${filled} filled`);
    await this.#show();
  }

  async #cancel(): Promise<void> {
    const { data: order, response } = await answered(
      this.marina.DELETE('/v1/orders/{id}', { params: { path: { id: this.#id } } }),
    );
    this.#partnerSaw.push(`DELETE /v1/orders/${this.#id}`, `→ ${response.status} ${order.state}`);
    await this.#event('cancelled', 150);
    await this.#show();
    const times = this.acceptor.receivedOrders().get(this.#id);
    check(times === 1, `the exchange must have the order once, and has it ${times} times`);
  }

  /** Reads the partner's feed until the order is in a state, with so many shares filled. There is one order only. */
  async #event(state: string, filled: number): Promise<void> {
    await until(this.screen, `order.${state}, ${filled} filled`, async () => {
      const query = { limit: 100, cursor: this.#cursor };
      const { data: page } = await answered(this.marina.GET('/v1/events', { params: { query } }));
      this.#cursor = page.next_cursor;
      for (const { version, type, data } of page.data) {
        // An object of a kind that is not known today has no such member.
        if (data.object !== 'order' || !('filled_quantity' in data)) continue;
        this.#partnerSaw.push(`event ${version} ${type}, ${data.filled_quantity} filled`);
        this.#last = data;
      }
      return this.#last?.state === state && this.#last.filled_quantity === filled ? true : undefined;
    });
  }

  /** Shows what the partner saw, and beside it the messages on the wire since the last time. */
  async #show(): Promise<void> {
    const messages = this.acceptor.messages().slice(this.#shown);
    this.#shown += messages.length;
    for (const line of besides(this.#partnerSaw, messages.flatMap(fixLines))) this.screen.say(line);
    this.#partnerSaw = [];
  }
}
