import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, GatewayProcess, Partner } from '../cluster.ts';
import { fourTypes, goodFields } from '../documents.ts';
import { patient } from '../patience.ts';

export interface UpgradeLoadOptions {
  /** The gateways that may be called; read before each request. */
  readonly gateways: () => readonly GatewayProcess[];
  readonly trader: Partner;
  readonly funder: Partner;
  readonly applicant: Partner;
  /** The funder with a key that may withdraw, and the gateways that have withdrawals; undefined while there is no such key. */
  readonly withdrawals: () => { readonly partner: Partner; readonly gateways: readonly GatewayProcess[] } | undefined;
  /** The image that is sent as each document. */
  readonly file: Buffer;
}

/** Errors after which the same request is sent again. */
const unclearCodes = new Set([
  'service_unavailable',
  'exchange_unavailable',
  'outcome_not_recorded',
  'document_unconfirmed',
  'document_in_flight',
]);
/** Errors that are the request's outcome. */
const finalCodes = new Set(['allocation_not_sent', 'application_not_sent', 'withdrawal_not_sent']);
const clearWithinMs = 40_000;

/** The lists in which the partner sees the load, a few items a page. */
export const lists = (
  who: Pick<UpgradeLoadOptions, 'trader' | 'funder' | 'applicant'>,
): readonly (readonly [Partner, string])[] => [
  [who.trader, '/v1/orders'],
  [who.trader, '/v1/events'],
  [who.funder, '/v1/allocations'],
  [who.funder, '/v1/wallet/transfers'],
  [who.applicant, '/v1/applications'],
  [who.applicant, '/v1/accounts'],
  [who.applicant, '/v1/keys'],
];
const objects = ['/v1/limits', '/v1/wallet', '/v1/market'];

const none: Answer = { status: undefined, body: undefined, headers: undefined };

let amountKobo = 1_000;

/**
 * Clients that allocate, withdraw, open accounts with documents, and read every page of every list, each request on the next of the
 * gateways. A request without a clear answer is sent again, to the next gateway, under the same key.
 */
export class UpgradeLoad {
  allocated = 0;
  withdrawn = 0;
  delivered = 0;
  /** How many times all lists were read to their ends. */
  rounds = 0;
  #turn = 0;
  #stopping = false;
  readonly #wrong: string[] = [];
  readonly #clients: Promise<void>[];

  private constructor(private readonly options: UpgradeLoadOptions) {
    this.#clients = [this.#allocate(), this.#withdraw(), this.#apply(), this.#read()];
  }

  static start(options: UpgradeLoadOptions): UpgradeLoad {
    return new UpgradeLoad(options);
  }

  /** Ends the load when all it has begun has its outcome. Throws on answers that must not be. */
  async settle(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#clients);
    assert.deepEqual(this.#wrong, []);
  }

  get #next(): GatewayProcess {
    const gateways = this.options.gateways();
    this.#turn += 1;
    const gateway = gateways[this.#turn % gateways.length];
    if (gateway === undefined) throw new Error('a load needs a gateway');
    return gateway;
  }

  async #allocate(): Promise<void> {
    while (!this.#stopping) {
      amountKobo += 1;
      const body = { amount_kobo: amountKobo };
      const key = randomUUID();
      await this.#untilClear('POST /v1/allocations', () => this.#next.allocate(this.options.funder, body, key));
      this.allocated += 1;
      await delay(100);
    }
  }

  async #withdraw(): Promise<void> {
    for (; !this.#stopping; await delay(100)) {
      if ((this.options.withdrawals()?.gateways ?? []).length === 0) continue;
      amountKobo += 1;
      const body = { amount_kobo: amountKobo, destination: amountKobo % 3 === 0 ? 'bank_account' : 'wallet' };
      const key = randomUUID();
      await this.#untilClear('POST /v1/withdrawals', () => this.#withdrawOnce(body, key));
      this.withdrawn += 1;
    }
  }

  /** Without a gateway that has withdrawals there is no answer. */
  async #withdrawOnce(body: object, key: string): Promise<Answer> {
    const { partner, gateways = [] } = this.options.withdrawals() ?? {};
    const gateway = gateways[this.#turn % gateways.length];
    if (partner === undefined || gateway === undefined) return none;
    return gateway.withdraw(partner, { ...body }, key);
  }

  async #apply(): Promise<void> {
    const { applicant } = this.options;
    while (!this.#stopping) {
      const request = { key: applicant.key, idempotencyKey: randomUUID(), body: goodFields };
      const made = await this.#untilClear('POST /v1/applications', () =>
        this.#next.request('POST', '/v1/applications', request),
      );
      if (made?.body?.id === undefined) continue;
      for (const type of fourTypes) {
        await this.#untilClear(`PUT ${type}`, () => this.#send(made.body.id, type));
        this.delivered += 1;
      }
      await delay(200);
    }
  }

  /** Sends a document; an application that takes none any more is the answer, unless it is still unsettled. */
  async #send(application: string, type: string): Promise<Answer> {
    const { applicant, file } = this.options;
    const answer = await putDocument(this.#next, applicant, application, type, file);
    if (answer.body?.error?.code !== 'application_not_accepting_documents') return answer;
    const found = await this.#next.request('GET', `/v1/applications/${application}`, { key: applicant.key });
    return ['sending', 'uncertain'].includes(found.body?.state) ? { ...found, status: undefined } : found;
  }

  async #read(): Promise<void> {
    while (!this.#stopping) {
      for (const [partner, path] of lists(this.options)) {
        await readAll(() => this.#next, partner, path).catch((error: unknown) => this.#wrong.push(String(error)));
      }
      for (const path of objects) {
        const answer = await this.#next.request('GET', path, { key: this.options.funder.key });
        if (!isUnclear(answer) && answer.status !== 200) this.#wrong.push(`${path}: ${JSON.stringify(answer.body)}`);
      }
      this.rounds += 1;
      await delay(50);
    }
  }

  async #untilClear(what: string, ask: () => Promise<Answer>): Promise<Answer | undefined> {
    for (const end = performance.now() + patient(clearWithinMs); performance.now() < end; await delay(100)) {
      const answer = await ask();
      if (answer.status === 200 || answer.status === 201 || finalCodes.has(answer.body?.error?.code)) return answer;
      if (isUnclear(answer)) continue;
      this.#wrong.push(`${what}: ${answer.status} ${JSON.stringify(answer.body)}`);
      return undefined;
    }
    this.#wrong.push(`${what}: no clear answer for ${clearWithinMs} ms`);
    return undefined;
  }
}

/**
 * Reads a list to its end, each page from the next gateway by the cursor that another one gave. A page that no gateway
 * answers, because it was killed or cannot serve, is asked for again.
 */
export async function readAll(
  next: () => GatewayProcess,
  { key }: Partner,
  path: string,
): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  const end = performance.now() + patient(clearWithinMs);
  for (let cursor = ''; ; ) {
    const answer = await next().request('GET', `${path}?limit=50${cursor}`, { key });
    if (isUnclear(answer)) {
      assert.ok(performance.now() < end, `${path} is not answered for ${clearWithinMs} ms`);
      await delay(50);
      continue;
    }
    const { status, body } = answer;
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    items.push(...body.data);
    if (!body.has_more) return items;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

/** Whether an answer leaves open what became of its request: none came, or it says to repeat the request. */
function isUnclear({ status, body }: Answer): boolean {
  return status === undefined || unclearCodes.has(body?.error?.code);
}

async function putDocument(
  gateway: GatewayProcess,
  { key }: Partner,
  application: string,
  type: string,
  file: Buffer,
): Promise<Answer> {
  try {
    const response = await fetch(
      `http://127.0.0.1:${gateway.restPort}/v1/applications/${application}/documents/${type}`,
      {
        method: 'PUT',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'image/png' },
        body: file,
        signal: AbortSignal.timeout(patient(20_000)),
      },
    );
    return { status: response.status, body: await response.json(), headers: response.headers };
  } catch {
    return none;
  }
}
