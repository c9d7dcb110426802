import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createConnection } from 'mysql2/promise';
import { Framing } from '../../src/fix-adapter/wire/framing.ts';
import { encode, type Field } from '../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../src/fix-adapter/wire/times.ts';
import type { Cluster } from '../support/cluster.ts';
import { ready } from '../support/eventually.ts';
import { createFixDatabase, order, startAdapterProcess } from '../support/fix/adapter.ts';
import { startAcceptor, whyNoAcceptor } from '../support/quickfix.ts';
import type { Turns } from './run.ts';
import { load, median, pacedLoad } from './support/load.ts';
import type { Row } from './support/report.ts';

/** Orders a second that it must carry. */
const mustCarry = 300;
const call = { timeoutMs: 10_000 };

/**
 * What the FIX adapter adds to an order: SubmitOrder through it, and a NewOrderSingle of a bare client, to the same exchange, in
 * turns, one at a time, with two commits of a row for comparison. Then what it needs for the orders that it must carry, and how many it can.
 */
export async function benchFix(_cluster: Cluster, { rounds, durationMs }: Turns): Promise<Row[]> {
  const reason = await whyNoAcceptor();
  if (reason !== undefined) return [{ what: 'FIX', figure: reason }];
  const login = { username: 'marina', password: 'secret-word' };
  const database = await createFixDatabase();
  const [adapted, bare] = await Promise.all([
    startAcceptor({ ...login, sender: 'EXCHANGE', target: 'MARINA' }),
    startAcceptor(login),
  ]);
  const adapter = await startAdapterProcess({
    MARINA_FIX_DATABASE_URL: database.url,
    MARINA_FIX_ADDRESS: `127.0.0.1:${adapted.port}`,
    MARINA_FIX_USERNAME: login.username,
    MARINA_FIX_PASSWORD: login.password,
    MARINA_FIX_MESSAGES_PER_SECOND: '10000',
  });
  const { orders } = await adapter.active();
  await ready(() => orders.submitOrder(order(), call), 20_000);
  const client = await bareClient(bare.port, login);
  const through = () => orders.submitOrder(order(), call);
  const directly = () => client.place();
  const connection = await createConnection({ uri: process.env.MARINA_TEST_DATABASE_URL });
  await connection.query('CREATE DATABASE bench_fix');
  await connection.query('CREATE TABLE bench_fix.bare (number BIGINT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(200))');
  const commit = () => connection.query("INSERT INTO bench_fix.bare (text) VALUES ('a row')");
  const commitTwice = async () => {
    await commit();
    await commit();
  };
  const added: number[] = [];
  const commits: number[] = [];
  const times: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const ours = await load(through, 1, durationMs);
    const theirs = await load(directly, 1, durationMs);
    const bare = await load(commitTwice, 1, durationMs);
    if (round < 0) continue;
    commits.push(bare.medianMs);
    times.push(ours.medianMs);
    added.push(ours.medianMs - theirs.medianMs);
  }
  const paced = await pacedLoad(through, mustCarry, rounds * durationMs);
  const memory = memoryOf(adapter.kept.pid);
  const busy: number[] = [];
  for (let round = 0; round < rounds; round += 1) busy.push((await load(through, 64, durationMs)).perSecond);
  const memoryWhenBusy = memoryOf(adapter.kept.pid);
  orders.close();
  client.close();
  await connection.query('DROP DATABASE bench_fix');
  await connection.end();
  await adapter.kept.stop();
  await Promise.all([adapted.kill(), bare.kill()]);
  await database.drop();
  const inMs = (values: readonly number[]) => `${median(values).toFixed(2)} ms`;
  return [
    { what: 'an order through the FIX adapter, median', figure: inMs(times) },
    { what: 'of which the adapter adds', figure: inMs(added), bound: '≤ 2 ms' },
    { what: 'two bare commits of a row', figure: inMs(commits) },
    { what: `an order, ${mustCarry} begun each second: median`, figure: `${paced.medianMs.toFixed(2)} ms` },
    { what: 'of these, ended each second', figure: paced.perSecond.toFixed(0), bound: `≥ ${mustCarry * 0.98}` },
    { what: 'its memory after that', figure: `${memory} MiB`, bound: '≤ 150 MiB' },
    { what: 'orders through it, 64 at once', figure: `${median(busy).toFixed(0)} a second` },
    { what: 'its memory after that', figure: `${memoryWhenBusy} MiB`, bound: '≤ 150 MiB' },
  ];
}

/** A client that writes an order and waits for its report, and keeps nothing. */
async function bareClient(port: number, { username, password }: { username: string; password: string }) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const framing = new Framing();
  let number = 0;
  let heard: () => void = () => {};
  socket.on('data', (bytes) => {
    for (const one of framing.push(bytes)) {
      if ('message' in one && ['A', '8'].includes(one.message.type)) heard();
    }
  });
  const ask = (type: string, fields: readonly Field[]) =>
    new Promise<void>((resolve) => {
      heard = resolve;
      number += 1;
      const header: Field[] = [
        [tags.MsgType, type],
        [tags.SenderCompID, 'BROKER'],
        [tags.TargetCompID, 'EXCHANGE'],
        [tags.MsgSeqNum, String(number)],
        [tags.SendingTime, utcTimestamp(Date.now())],
      ];
      socket.write(encode('FIXT.1.1', [...header, ...fields]));
    });
  await ask(messageTypes.Logon, [
    [tags.EncryptMethod, '0'],
    [tags.HeartBtInt, '300'],
    [tags.Username, username],
    [tags.Password, password],
    [tags.DefaultApplVerID, '9'],
  ]);
  return {
    place: () =>
      ask(messageTypes.NewOrderSingle, [
        [tags.ClOrdID, `B${number}`],
        [tags.HandlInst, '1'],
        [tags.Symbol, 'MTNN'],
        [tags.Side, '1'],
        [tags.TransactTime, utcTimestamp(Date.now())],
        [tags.OrderQty, '100'],
        [tags.OrdType, '1'],
        [tags.TimeInForce, '0'],
      ]),
    close: () => socket.destroy(),
  };
}

function memoryOf(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_024);
}
