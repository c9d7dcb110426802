/**
 * A back office: it records the events of all partners, misses none and records none twice, and lists a day's orders.
 *
 *   node --import tsx clients/back-office/back-office.ts follow events.jsonl
 *   node --import tsx clients/back-office/back-office.ts orders 2026-03-02
 *
 * NATS_URL, ADMIN_URL and OPERATOR_TOKEN (role `read`) come from the environment, or else from the running sandbox.
 */
import { existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { connect } from 'nats';
import { Diagnostics } from '../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { Reports } from '../../src/gen/marina/admin/v1/reports_pb.ts';
import { OrderState } from '../../src/gen/marina/gateway/v1/orders_pb.ts';

/** An event, or the cursor up to which all events of the gateway are recorded. */
type Line = { partner: string; version: number; id: string; body: string } | { cursor: string };

/** How often it asks the gateway for what NATS never brought. A gap of versions makes it ask at once. */
const catchUpEveryMs = 60_000;
const waitMs = 1_000;
const callMs = 30_000;

const file = `${process.env.MARINA_DATA_DIR ?? '.local'}/sandbox.json`;
const sandbox = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
const { NATS_URL: natsUrl = sandbox.nats_url, NATS_API_PREFIX: apiPrefix = 'marina.API' } = process.env;
const { ADMIN_URL: baseUrl = `http://${sandbox.admin_address}` } = process.env;
const { OPERATOR_TOKEN: token = sandbox.role_tokens?.read } = process.env;
const transport = createGrpcTransport({ baseUrl, defaultTimeoutMs: callMs });
const headers = { authorization: `Bearer ${token}` };

const [command, argument = ''] = process.argv.slice(2);
if (command === 'follow') await follow(openRecords(argument));
else if (command === 'orders') await listOrders(argument);
else throw new Error('follow FILE, or orders DAY');

async function follow(records: ReturnType<typeof openRecords>): Promise<never> {
  const { host, username, password } = new URL(natsUrl);
  // In a URL they are percent-encoded.
  const login = username === '' ? {} : { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
  const always = { maxReconnectAttempts: -1, waitOnFirstConnect: true };
  const connection = await connect({ servers: host, ...login, ...always, inboxPrefix: '_INBOX_back-office' });
  const jetStream = connection.jetstream({ apiPrefix, timeout: callMs });
  let caughtUpAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      if (records.hasGap() || performance.now() - caughtUpAt > catchUpEveryMs) {
        await catchUp(records);
        caughtUpAt = performance.now();
      }
      const consumer = await jetStream.consumers.get('EVENTS', 'back-office');
      for await (const message of await consumer.fetch({ max_messages: 100, expires: waitMs })) {
        const partner = message.headers?.get('Marina-Partner') ?? '';
        const version = Number(message.headers?.get('Marina-Version'));
        const body = message.string();
        records.add([{ partner, version, id: JSON.parse(body).id, body }]);
        // It is on the disk by now. If the acknowledgement is lost, the event comes again and is known.
        message.ack();
      }
    } catch (error) {
      // NATS may have lost events. It does not bring those that happened without it.
      console.error(`tries again: ${error}`);
      caughtUpAt = Number.NEGATIVE_INFINITY;
      await sleep(waitMs);
    }
  }
}

/** Reads from the gateway every event since the last time it did, whether NATS brought it or not. */
async function catchUp(records: ReturnType<typeof openRecords>): Promise<void> {
  for (let isBehind = true; isBehind; ) {
    isBehind = false;
    const cursor = records.cursor();
    const from = cursor === undefined ? { since: { seconds: 0n, nanos: 0 } } : { cursor };
    const left = new AbortController();
    const stream = createClient(Diagnostics, transport).watchEvents(from, { headers, signal: left.signal });
    // The first message has events, unless there are no further ones.
    for await (const { events, nextCursor } of stream) {
      isBehind = events.length > 0;
      const lines = events.map(({ partnerId: partner, version, id, body }) => {
        return { partner, version: Number(version), id, body };
      });
      if (isBehind) records.add([...lines, { cursor: nextCursor }]);
      break;
    }
    left.abort();
  }
  for (const gap of records.acceptGaps()) console.error(`the gateway does not hold the versions ${gap}`);
}

/** Records in a file of JSON lines. A real back office has a table with the event's `id` as its key. */
function openRecords(path: string) {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  // A crash may have left a part of a line. Its event was not acknowledged.
  if (whole !== text) truncateSync(path, Buffer.byteLength(whole));
  const records = openSync(path, 'a', 0o600);
  let length = Buffer.byteLength(whole);
  const ids = new Set<string>();
  /** Of each partner: all versions up to one are recorded, and these beyond it. */
  const partners = new Map<string, { upTo: number; beyond: Set<number> }>();
  let cursor: string | undefined;

  function know(line: Line): void {
    if ('cursor' in line) {
      cursor = line.cursor;
      return;
    }
    ids.add(line.id);
    const known = partners.get(line.partner) ?? { upTo: 0, beyond: new Set<number>() };
    partners.set(line.partner, known);
    known.beyond.add(line.version);
    while (known.beyond.delete(known.upTo + 1)) known.upTo += 1;
  }
  /** Goes on after versions that are gone: removed after 30 days, or skipped when the database was restored. */
  function acceptGaps(): string[] {
    return [...partners].flatMap(([partner, known]) => {
      if (known.beyond.size === 0) return [];
      const gap = `${known.upTo + 1} to ${Math.min(...known.beyond) - 1} of ${partner}`;
      known.upTo = Math.max(...known.beyond);
      known.beyond.clear();
      return [gap];
    });
  }
  for (const line of whole.split('\n').filter(Boolean)) know(JSON.parse(line));
  acceptGaps();
  return {
    cursor: () => cursor,
    hasGap: () => [...partners.values()].some(({ beyond }) => beyond.size > 0),
    acceptGaps,
    add(lines: readonly Line[]): void {
      const fresh = lines.filter((line) => 'cursor' in line || !ids.has(line.id));
      if (fresh.length === 0) return;
      const added = Buffer.from(fresh.map((line) => `${JSON.stringify(line)}\n`).join(''));
      try {
        writeFileSync(records, added);
        fsyncSync(records);
      } catch (error) {
        // A full disk may have taken a part.
        ftruncateSync(records, length);
        throw error;
      }
      length += added.length;
      for (const line of fresh) know(line);
    },
  };
}

/** Prints the orders of all partners that were created on a day of Lagos. */
async function listOrders(fromDay: string): Promise<void> {
  let isComplete = false;
  for await (const { orders, complete } of createClient(Reports, transport).exportOrders({ fromDay }, { headers })) {
    for (const { partnerId, order } of orders) {
      if (order !== undefined) console.log(partnerId, order.id, OrderState[order.state], order.symbol, order.quantity);
    }
    isComplete ||= complete;
  }
  if (!isComplete) throw new Error('the list was cut off');
}
