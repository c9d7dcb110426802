import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../eventually.ts';
import type { Acceptor, Manners } from '../acceptor.ts';
import type { Habit } from '../habit.ts';
import type { WireField, WireMessage } from '../wire.ts';

function fieldsOfLogon(acceptor: Acceptor, ...more: WireField[]): WireField[] {
  return [[98, '0'], [108, '30'], ...(acceptor.version === 'FIXT.1.1' ? ([[1137, '9']] as WireField[]) : []), ...more];
}

/** Refuses each Logon in some way, as long as it says so. */
function refusing(acceptor: Acceptor, refuse: (message: WireMessage) => void): Manners {
  return {
    logon: (message) => {
      acceptor.numbers.nextIn = message.number + 1;
      refuse(message);
      return true;
    },
  };
}

const password = 'Kola-nut-1960';
/** Of rows whose exchange does not repeat the password. */
const otherPassword = 'Palm-oil-1914';

const refusals: readonly (readonly [string, (acceptor: Acceptor, message: WireMessage) => void])[] = [
  ['a Logout with the password in its Text', (acceptor) => acceptor.logOut(`invalid password ${password} of MARINA`)],
  [
    'a Logout without Text and with number 1',
    (acceptor) => {
      acceptor.write(acceptor.numbers.make('5', [], { number: 1 }));
      acceptor.close();
    },
  ],
  [
    'a Reject of the Logon and the end of the connection',
    (acceptor, message) => {
      acceptor.write(
        acceptor.numbers.make('3', [
          [45, message.text(34)],
          [372, 'A'],
          [373, '99'],
        ]),
      );
      acceptor.close();
    },
  ],
  [
    'a Logon and a Logout right behind it',
    (acceptor) => {
      acceptor.write(acceptor.numbers.make('A', fieldsOfLogon(acceptor)));
      acceptor.logOut('the password has expired');
    },
  ],
];

/** Logons that are refused: tries stop and ring, and begin again by an operator, and no order is the worse for it. */
export const refusalHabits: readonly Habit[] = refusals.map(([what, refuse], at) => ({
  name: `the exchange refuses a Logon by ${what}, and an operator logs on again`,
  why: 'brokers lock users after a few wrong passwords',
  expect: 'true',
  script: async (act) => {
    const { chain, acceptor } = act;
    await act.sees('pending');
    const desk = await act.desk();
    await chain.stopAdapter();
    acceptor.manners = refusing(acceptor, (message) => refuse(acceptor, message));
    const before = acceptor.received('A').length;
    await chain.startAdapter({
      ...(await chain.operatorSettings()),
      MARINA_FIX_USERNAME: 'marina',
      MARINA_FIX_PASSWORD: at === 0 ? password : otherPassword,
      MARINA_FIX_LOGON_TRIES: '1',
    });
    await eventually(async () => {
      assert.ok((await chain.troubles('logon_stopped')) > 0, 'nothing rings');
    }, 45_000);
    // Longer than the waits after a connection that ended.
    await delay(4_000);
    assert.equal(acceptor.received('A').length, before + 1, 'Logons were sent after the last try');
    const { session } = await chain.operate('GetSession');
    assert.equal(session.state, 'SESSION_STATE_STOPPED');
    assert.ok(!session.reason.includes(password), 'the password is in the reason');
    assert.ok(!chain.hasLogged(at === 0 ? password : otherPassword), 'the password is in the log');
    await act.place({ quantity: 7 });
    desk.trade(40);
    acceptor.manners = {};
    await chain.operate('LogOn', { reason: 'the broker has set the password' });
    await chain.up();
    await act.sees('partially_filled', 40);
    await act.sees('refused', 0, 1);
    await chain.stopAdapter();
    await chain.startAdapter({ MARINA_FIX_USERNAME: '', MARINA_FIX_PASSWORD: '', MARINA_FIX_LOGON_TRIES: '' });
    await chain.up();
  },
}));
