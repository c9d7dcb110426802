/** The tries of a FIX session, over lines and a clock of the test. */
import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { parseDays, type Schedule } from '../../../src/fix-adapter/session/schedule.ts';
import { FixSession } from '../../../src/fix-adapter/session/session.ts';
import type { Numbers, Outgoing, SessionSettings } from '../../../src/fix-adapter/session/types.ts';
import { Framing } from '../../../src/fix-adapter/wire/framing.ts';
import { encode, type Field } from '../../../src/fix-adapter/wire/message.ts';
import { messageTypes, tags } from '../../../src/fix-adapter/wire/tags.ts';
import { utcTimestamp } from '../../../src/fix-adapter/wire/times.ts';

const usual: SessionSettings = {
  ...{ beginString: 'FIX.4.4', senderCompId: 'US', targetCompId: 'THEM', username: undefined },
  ...{ password: () => undefined, heartbeatMs: 60_000, logonTimeoutMs: 5_000, logoutTimeoutMs: 500 },
  ...{ resetsByLogon: false, resetsOnLogon: false, sendsNextExpected: false, resendChunk: undefined },
  ...{ gapQuietMs: 500, gapTimeoutMs: 7_000, slowUpMs: 30_000, logonTries: 3, refusedWaitMs: 5_000 },
  ...{ firstReconnectMs: 100, longestReconnectMs: 1_600, longestReconnectAfterUpMs: 400 },
};
const always: Schedule = { days: parseDays('mon-sun'), start: '00:00', end: '23:59:59', calendar: new Map() };
/** Midnight in Lagos, of a Monday. */
const midnight = Date.parse('2026-11-22T23:00:00Z');

/**
 * One try. `away`: nobody listens. `refused`: the Logon is. `late`: it is refused after it was answered. `up 500`: the session is up
 * for so many milliseconds. `gap`: messages are passed over, and the line breaks before the session is up.
 */
type Try = 'away' | 'refused' | 'late' | 'gap' | `up ${number}`;

let clock = 0;

/** A session whose other side does what its tries say, and what was seen of it, each with its time. */
function begin(tries: readonly Try[], changed: Partial<SessionSettings> = {}, addresses = ['first']) {
  const seen: string[] = [];
  const see = (what: string) => void seen.push(`${clock} ${what}`);
  const record = { nextOut: 1, nextIn: 1, startedAt: 0, isAway: false };
  const left = [...tries];
  const sockets: Duplex[] = [];
  const stopping = new AbortController();
  const now = { at: midnight + 36_000_000 };
  const numbers = (): Numbers => ({ nextOut: record.nextOut, nextIn: record.nextIn, startedAt: record.startedAt });
  const session = new FixSession<Outgoing>({
    settings: { ...usual, ...changed },
    schedule: always,
    addresses,
    connect: async (address) => {
      see(address);
      const what = left.shift() ?? 'up 100000000';
      if (what === 'away') throw new Error('nobody listens');
      const socket = line(what, record, () => now.at + clock);
      sockets.push(socket);
      return socket;
    },
    record: {
      numbers: async () => {
        if (record.isAway) throw new Error('the record is away');
        return numbers();
      },
      startDay: async (startedAt) => {
        Object.assign(record, { startedAt, nextOut: 1, nextIn: 1 });
        see(`numbering ${startedAt - midnight}`);
        return numbers();
      },
      sending: async (_, nextOut) => {
        record.nextOut = nextOut;
        return [];
      },
      unwritten: async () => {},
      received: async (_, nextIn) => {
        record.nextIn = nextIn;
      },
    },
    now: () => now.at + clock,
    mayWrite: () => true,
    events: {
      up: () => see('up'),
      down: () => see('down'),
      missed: () => see('missed'),
      gapFilled: () => {},
      trouble: (what) => see(what),
    },
    log: { info() {}, warn() {}, error() {}, debug() {} } as never,
  });
  const running = session.run(stopping.signal);
  const pass = async (ms: number) => {
    await settle();
    for (let rest = ms; rest > 0; rest -= 50) {
      clock += Math.min(50, rest);
      mock.timers.tick(Math.min(50, rest));
      await settle();
    }
  };
  const stop = async () => {
    stopping.abort();
    let isOver = false;
    void running.then(() => {
      isOver = true;
    });
    for (let waits = 0; !isOver && waits < 40; waits += 1) await pass(50);
    assert.ok(isOver, 'it ends in bounded time');
  };
  /** All that was seen since the last look. */
  const look = () => seen.splice(0);
  return { session, record, sockets, now, pass, stop, look };
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 14; turns += 1) await turn();
}

function line(what: Try, record: { nextIn: number }, now: () => number): Duplex {
  const framing = new Framing();
  let next = 0;
  const say = (type: string, ...fields: Field[]) => {
    const header: Field[] = [
      ...([
        [tags.MsgType, type],
        [tags.SenderCompID, 'THEM'],
        [tags.TargetCompID, 'US'],
      ] as const),
      ...([
        [tags.MsgSeqNum, String(next)],
        [tags.SendingTime, utcTimestamp(now())],
      ] as const),
    ];
    socket.push(encode('FIX.4.4', [...header, ...fields]));
    next += 1;
  };
  const answer = (type: string, testReqId: string) => {
    if (type === messageTypes.Logon) next = record.nextIn;
    if (type === messageTypes.Logon && what === 'refused') say(messageTypes.Logout, [tags.Text, 'Ada is locked']);
    else if (type === messageTypes.Logon) say(messageTypes.Logon);
    else if (type === messageTypes.Logout) say(messageTypes.Logout);
    else if (type === messageTypes.TestRequest && what === 'late')
      say(messageTypes.Logout, [tags.Text, 'Ada is locked']);
    else if (type === messageTypes.TestRequest && what === 'gap') {
      say(messageTypes.SequenceReset, [tags.GapFillFlag, 'Y'], [tags.NewSeqNo, String(next + 2)]);
      setImmediate(() => socket.push(null));
    } else if (type === messageTypes.TestRequest) {
      say(messageTypes.Heartbeat, [tags.TestReqID, testReqId]);
      setTimeout(() => socket.destroy(), Number(what.slice(3)));
    }
  };
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      for (const one of framing.push(chunk)) {
        if ('message' in one) answer(one.message.type, one.message.get(tags.TestReqID) ?? '');
      }
      done();
    },
  });
  return socket;
}

describe('the tries of a FIX session', () => {
  beforeEach(() => {
    clock = 0;
    mock.method(performance, 'now', () => clock);
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    syncBuiltinESMExports();
  });
  afterEach(() => {
    mock.timers.reset();
    mock.restoreAll();
    syncBuiltinESMExports();
  });

  it('the tries of a FIX session wait twice as long each time that nobody listens, up to a longest wait, and go through the addresses', async () => {
    const { pass, stop, look } = begin(['away', 'away', 'away', 'away', 'away', 'away'], {}, [
      'first',
      'second',
      'third',
    ]);
    await pass(6_600);
    assert.deepEqual(look(), [
      ...['0 first', '200 second', '600 third', '1400 first', '3000 second', '4600 third', '6200 first'],
      ...['6200 numbering 0', '6200 up'],
    ]);
    await stop();
  });

  it('the tries of a FIX session wait no longer than another longest wait after each session that came up, and stay with its address', async () => {
    const { pass, stop, look } = begin(['away', 'away', 'away', 'up 500', 'up 500', 'up 500', 'away'], {}, [
      'first',
      'second',
    ]);
    await pass(6_000);
    assert.deepEqual(
      look().filter((what) => !what.endsWith('numbering 0')),
      [
        ...['0 first', '200 second', '600 first', '1400 second', '1400 up', '1900 down'],
        ...['2300 second', '2300 up', '2800 down', '3200 second', '3200 up', '3700 down'],
        ...['4100 second', '4900 first', '4900 up'],
      ],
    );
    await stop();
  });

  it('the tries of a FIX session begin with the shortest wait again after a connection that lasted longer than ten seconds, and not after one of ten', async () => {
    // The wait before it had doubled already.
    for (const [lasts, again] of [
      [10_000, '10200 first'],
      [10_050, '10150 first'],
    ] as const) {
      clock = 0;
      const { pass, stop, look } = begin([`up ${lasts}`], { longestReconnectMs: 400 });
      await pass(11_000);
      const tries = look().filter((what) => what.endsWith('first'));
      assert.deepEqual(tries, ['0 first', again]);
      await stop();
    }
  });

  it('the tries of a FIX session wait longer after a refused Logon, and stop after so many in a row', async () => {
    const { session, pass, stop, look } = begin(['refused', 'late', 'refused', 'up 100']);
    await pass(5_000);
    assert.deepEqual(look(), [...['0 first', '0 numbering 0', '0 logon_refused', '5000 first', '5000 logon_refused']]);
    assert.equal(session.status().refusals, 2);
    await pass(5_000);
    assert.deepEqual(look(), ['10000 first', '10000 logon_refused', '10000 logon_stopped']);
    const { state, reason, logged, refusals } = session.status();
    assert.deepEqual(
      [state, reason, logged, refusals],
      ['stopped', 'no further Logon is sent: the Logon was refused: Ada is locked', 'no further Logon is sent', 3],
    );
    await pass(60_000);
    assert.deepEqual(
      look().filter((what) => !what.endsWith('logon_stopped')),
      [],
    );
    await stop();
  });

  it('the tries of a FIX session go on at once when an operator says so, as often as he does', async () => {
    const { session, pass, stop, look } = begin(['refused', 'refused', 'refused', 'away', 'up 1'], { logonTries: 1 });
    await pass(300);
    session.resume();
    await pass(50);
    assert.equal(session.status().refusals, 1);
    session.resume();
    await pass(50);
    session.resume();
    await pass(50);
    assert.deepEqual(look().filter((what) => what.endsWith('first')).length, 4);
    // Also during the wait for an address where nobody listens.
    session.resume();
    await pass(50);
    assert.ok(look().some((what) => what.endsWith('up')));
    await stop();
  });

  it('the tries of a FIX session count refused Logons in a row: a session that came up ends the count', async () => {
    const { session, pass, stop } = begin(['refused', 'refused', 'up 100', 'refused', 'refused', 'up 100000']);
    await pass(30_000);
    assert.deepEqual([session.status().state, session.status().refusals], ['up', 0]);
    await stop();
  });

  it('the tries of a FIX session go on with another password, and on the next day, each with a whole count', async () => {
    let password = 'old';
    const { session, now, pass, stop, look } = begin(Array(9).fill('refused'), {
      logonTries: 2,
      password: () => password,
    });
    await pass(10_000);
    look();
    password = 'new';
    await pass(8_000);
    const logons = () => look().filter((what) => what.endsWith('first')).length;
    assert.equal(logons(), 2);
    assert.equal(session.status().state, 'stopped');
    now.at += 86_400_000;
    await pass(8_000);
    assert.equal(logons(), 2);
    await stop();
  });

  it('the tries of a FIX session show what the other side said to operators, and to no log', async () => {
    const { session, pass, stop } = begin(['refused']);
    await pass(100);
    const { state, reason, logged } = session.status();
    assert.deepEqual(
      [state, reason, logged],
      ['waiting', 'the Logon was refused: Ada is locked', 'the Logon was refused'],
    );
    await stop();
  });

  it('the tries of a FIX session show since when the session is in its state, and its numbers also while there is no connection', async () => {
    const { session, now, pass, stop } = begin(['up 500', 'away', 'away']);
    await pass(100);
    const up = session.status();
    assert.deepEqual([up.state, up.nextOut, up.nextIn, up.address], ['up', 3, 3, 'first']);
    await pass(200);
    assert.equal(session.status().since, up.since);
    await pass(300);
    const down = session.status();
    assert.deepEqual([down.state, down.nextOut, down.nextIn, down.since], ['waiting', 3, 3, now.at + 600]);
    await stop();
  });

  it('close a line whose numbers or new password cannot be stored, write nothing over it, and use another one', async () => {
    const passwords = { isAway: false, next: async () => (passwords.isAway ? assert.fail('away') : undefined) };
    for (const fault of [undefined, passwords]) {
      clock = 0;
      const { record, sockets, pass, stop, look } = begin(['up 5', 'up 5', 'up 5', 'up 100000'], {
        passwords: { next: passwords.next, answered: async () => {} },
      });
      (fault ?? record).isAway = true;
      await pass(700);
      assert.deepEqual(
        sockets.map(({ destroyed }) => destroyed),
        [true, true, true],
      );
      assert.equal(record.nextOut, 1);
      (fault ?? record).isAway = false;
      await pass(1_000);
      assert.equal(look().at(-1)?.split(' ')[1], 'up');
      await stop();
    }
  });

  it('tell of messages that were passed over on connections before the session was up, once', async () => {
    const { pass, stop, look } = begin(['gap', 'gap', 'up 100', 'up 100']);
    await pass(3_000);
    const told = look().map((what) => what.split(' ')[1]);
    assert.deepEqual(
      told.filter((what) => what === 'up' || what === 'missed'),
      ['up', 'missed', 'up', 'up'],
    );
    await stop();
  });

  it('the tries of a FIX session begin a numbering on each day, also where the days touch, and keep one within a day', async () => {
    const { now, pass, stop, look } = begin(['up 500', 'up 100000000', 'up 100000000']);
    await pass(2_000);
    assert.deepEqual(
      look().filter((what) => what.includes('numbering')),
      ['0 numbering 0'],
    );
    now.at += 86_400_000 - 36_000_000 - 2_000 - 1;
    await pass(1_000);
    assert.deepEqual(
      look().map((what) => what.split(' ').slice(1).join(' ')),
      ['down', 'first', 'numbering 86400000', 'up'],
    );
    await stop();
  });

  it('the tries of a FIX session take no message while there is no connection, and say that the record does not have it', async () => {
    const { session, pass, stop } = begin(['up 500', 'away']);
    const outcomes: string[] = [];
    const send = () => session.send({ type: 'D', fields: [], settled: (outcome) => void outcomes.push(outcome) });
    send();
    await pass(50);
    assert.equal(session.isUp, true);
    await pass(500);
    assert.equal(session.isUp, false);
    send();
    await stop();
    send();
    assert.deepEqual(outcomes, ['unrecorded', 'unrecorded', 'unrecorded']);
  });

  it('warn while the session does not come up, first after a time and then six times as seldom, and anew after it was up', async () => {
    const tries: Try[] = [...Array<Try>(8).fill('away'), 'up 4000', ...Array<Try>(9).fill('away')];
    const { pass, stop, look } = begin(tries, { slowUpMs: 1_000 });
    await pass(22_000);
    assert.deepEqual(
      look().filter((what) => /not_up| up| down/.test(what)),
      ['1000 not_up', '7000 not_up', '9400 up', '13400 down', '14400 not_up', '20400 not_up'],
    );
    await stop();
  });
});
