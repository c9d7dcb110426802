import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Changes, Conversation } from '../../support/fix/conversation.ts';

/** Holds a conversation: in each line a step, and behind the bar all that comes of it, in its order. */
async function follows(script: string, changes: Changes = {}): Promise<void> {
  const lines = script
    .trim()
    .split('\n')
    .map((line) => line.trim());
  const said = await Conversation.of(
    lines.map((line) => line.split(' |')[0] ?? ''),
    changes,
  );
  assert.deepEqual(
    said.map(([step, told]) => `${step} | ${told}`.trimEnd()),
    lines,
  );
}

/** A connection whose Logon and first test are answered at once. */
const up = `begin | out 2 in 1, > A.1
  A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
  0 2 112=ready-1 | up, note 0.2 applied`;

describe('a connection of the FIX session', () => {
  it('a connection of the FIX session gives each number to the record before its message is written, and is up when its test is answered', () =>
    follows(`
      begin | out 2 in 1, > A.1
      state | logging_on
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      state | testing
      send early | early unrecorded
      0 2 112=ready-2 | note 0.2 applied
      0 3 | note 0.3 applied
      0 4 112=ready-1 | up, note 0.4 applied
      state | up
      send a | out 4 in 5 a, > D.3 11=a, a written
      8 5 & 8 6 | in 7: 8.5 8.6, note 8.5 applied, note 8.6 applied
      1 7 112=x | out 5 in 8, > 0.4 112=x, note 1.7 applied
      1 8 | out 6 in 9, > 0.5, note 1.8 applied
      0 9 | note 0.9 applied
    `));

  it('a connection of the FIX session logs out with a number of its own, answers nothing behind it, and ends when the Logout is answered', () =>
    follows(`
      ${up}
      stop | out 4 in 3, > 5.3
      state | logging_out
      send b | b unrecorded
      8 3 | in 4: 8.3, note 8.3 applied
      1 4 112=x | note 1.4 applied
      2 5 7=1 16=0 | > 4.1 again 123=Y 36=4, filled 1-3 up, note 2.5 applied
      B 6 | trouble unsupported, in 7: B.6, note B.6 refused
      5 7 | closed, down, in 8, ended, note 5.7 applied
    `));

  it('a connection of the FIX session ends without the answer to its Logout when the time of that is over', () =>
    follows(`
      ${up}
      stop | out 4 in 3, > 5.3
      +1900 |
      +100 | closed, down, in 3, ended
    `));

  it('a connection of the FIX session logs out also when its Logon is not answered', () =>
    follows(`
      begin | out 2 in 1, > A.1
      stop | out 3 in 1, > 5.2
      A 1 | note A.1 applied
      +1900 |
      +100 | closed, in 2, ended
    `));

  it('a connection of the FIX session writes nothing when it is stopped before it begins', () =>
    follows(
      `
      begin | closed, ended
      +200 |
    `,
      { stopped: true },
    ));

  it('a connection of the FIX session asks for what is missing before the Logon, and tests again when the answer to its test was passed over', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 4 | trouble number_too_high, out 3 in 1, > 1.2 112=ready-1, out 4 in 1, > 2.3 7=1 16=0, note A.4 applied
      state | receiving
      8 1 43=Y | in 2: 8.1, note 8.1 applied
      8 2 43=Y | in 3: 8.2, note 8.2 applied
      0 5 112=ready-1 | note 0.5 gap
      4 3 43=Y 123=Y 36=6 | out 5 in 3, > 1.4 112=ready-2, in 6 over, note 4.3 applied
      state | testing
      0 6 112=ready-2 | up, missed, note 0.6 applied
      state | up
      8 7 | in 8: 8.7, note 8.7 applied
    `));

  it('a connection of the FIX session keeps what comes too early out of the record, answers tests and requests of it, and passes over no administrative message that it has seen', () =>
    follows(`
      ${up}
      8 5 | trouble number_too_high, out 4 in 3, > 2.3 7=3 16=0, note 8.5 gap
      1 6 112=q | out 5 in 3, > 0.4 112=q, note 1.6 gap
      1 7 112=r x=1 | note 1.7 gap
      2 8 7=1 16=0 | > 4.1 again 123=Y 36=5, filled 1-4 up, note 2.8 gap
      4 9 123=Y 36=11 | note 4.9 gap
      8 3 43=Y | in 4: 8.3, note 8.3 applied
      8 4 43=Y | in 5: 8.4, note 8.4 applied
      8 5 43=Y | in 6: 8.5, note 8.5 applied
      4 6 43=Y 123=Y 36=9 | note 4.6 applied
      state | receiving
      8 9 43=Y | in 10: 8.9, note 8.9 applied
      8 10 | in 11: 8.10, note 8.10 applied
      8 11 | in 12: 8.11, note 8.11 applied
    `));

  it('a connection of the FIX session tells that messages were passed over when nothing is missing any more', () =>
    follows(`
      ${up}
      8 6 | trouble number_too_high, out 4 in 3, > 2.3 7=3 16=0, note 8.6 gap
      4 3 43=Y 123=Y 36=5 | in 5 over, note 4.3 applied
      8 5 43=Y | in 6: 8.5, note 8.5 applied
      8 6 43=Y | in 7: 8.6, missed, note 8.6 applied
      8 7 | in 8: 8.7, note 8.7 applied
    `));

  it('a connection of the FIX session tells of messages that were passed over on an earlier connection when it is up, and once', () =>
    follows(
      `
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      0 2 112=ready-1 | up, missed, note 0.2 applied
      8 3 | in 4: 8.3, note 8.3 applied
    `,
      { hasMissed: true },
    ));

  it('a connection of the FIX session ends at a number that came before, unless it is a repetition, which changes nothing', () =>
    follows(`
      ${up}
      8 2 43=Y | note 8.2 duplicate
      4 1 43=Y 123=Y 36=3 | note 4.1 duplicate
      4 2 43=Y 123=Y 36=4 | in 4 over, missed, note 4.2 duplicate
      8 4 | in 5: 8.4, note 8.4 applied
      8 4 | trouble number_too_low, out 4 in 5, > 5.3 58=MsgSeqNum too low, expecting 5 but received 4, closed, down, ended: Disconnect: MsgSeqNum too low, expecting 5 but received 4, note 8.4 refused
    `));

  it('a connection of the FIX session fills what it is asked for again, and trusts no test that was written before that', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      2 2 7=1 16=0 | > 4.1 again 123=Y 36=3, filled 1-2, out 4 in 3, > 1.3 112=ready-2, note 2.2 applied
      0 3 112=ready-1 | note 0.3 applied
      0 4 112=ready-2 | up, note 0.4 applied
      2 5 7=2 16=2 | > 4.2 again 123=Y 36=3, filled 2-2 up, note 2.5 applied
      2 6 7=3 16=2 | out 5 in 7, > 3.4 45=6 372=2 373=5, note 2.6 refused
      2 7 7=0 16=0 | out 6 in 8, > 3.5 45=7 372=2 373=5, note 2.7 refused
      2 8 7=3 16=3 | > 4.3 again 123=Y 36=4, filled 3-3 up, note 2.8 applied
      2 9 7=9 16=0 | note 2.9 applied
    `));

  it('a connection of the FIX session follows a reset to a higher number and to the next one, and rejects one to a lower', () =>
    follows(`
      ${up}
      4 9 36=9 | trouble numbers_reset, in 9 over, missed, note 4.9 applied
      4 2 36=8 | out 4 in 9, > 3.3 45=2 372=4 373=5, note 4.2 refused
      4 1 36=9 | trouble numbers_reset, note 4.1 applied
      8 9 | in 10: 8.9, note 8.9 applied
      4 10 123=Y 36=10 | out 5 in 11, > 3.4 45=10 372=4 373=5, note 4.10 refused
      4 11 123=Y 36=12 | note 4.11 applied
      8 12 | in 13: 8.12, note 8.12 applied
    `));

  it('a connection of the FIX session follows a gap fill that covers more than its own number, and stores that with it', () =>
    follows(`
      ${up}
      4 3 123=Y 36=6 | in 6 over, missed, note 4.3 applied
      8 6 | in 7: 8.6, note 8.6 applied
    `));

  it('a connection of the FIX session answers a Logout, and takes it for the end of a session that was up', () =>
    follows(`
      ${up}
      8 3 & 5 4 58=bye | in 5: 8.3, out 4 in 5, > 5.3, closed, down, ended: Disconnect: the other side logged out: bye, note 8.3 applied, note 5.4 applied
    `));

  it('a connection of the FIX session takes a Logout before it was up for a refusal', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      5 2 58=locked | out 4 in 3, > 5.3, trouble logon_refused, closed, in 3, ended: LogonRefused: the other side logged out before the session was up: locked, note 5.2 applied
    `));

  it('a connection of the FIX session takes a Logout behind a message of the application for no refusal', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      8 2 | in 3: 8.2, note 8.2 applied
      5 3 58=bye | out 4 in 4, > 5.3, closed, in 4, ended: Disconnect: the other side logged out while messages were asked for again: bye, note 5.3 applied
    `));

  it('a connection of the FIX session takes a Logout while messages are missing for no refusal', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 3 | trouble number_too_high, out 3 in 1, > 1.2 112=ready-1, out 4 in 1, > 2.3 7=1 16=0, note A.3 applied
      5 4 58=bye | out 5 in 1, > 5.4, closed, ended: Disconnect: the other side logged out while messages were asked for again: bye, note 5.4 gap
    `));

  it('a connection of the FIX session ends when the Logon is refused by a Logout', () =>
    follows(`
      begin | out 2 in 1, > A.1
      5 1 58=no | trouble logon_refused, closed, ended: LogonRefused: the Logon was refused: no, note 5.1 applied
    `));

  it('a connection of the FIX session ends when the Logon is refused by a Reject', () =>
    follows(`
      begin | out 2 in 1, > A.1
      3 1 45=1 373=5 | trouble logon_refused, closed, ended: LogonRefused: the Logon was refused: reason 5, note 3.1 applied
    `));

  it('a connection of the FIX session ends when something else comes before the Logon', () =>
    follows(`
      begin | out 2 in 1, > A.1
      8 1 | closed, ended: Disconnect: the first message of the other side is no Logon, note 8.1 applied
    `));

  it('a connection of the FIX session ends with a Logout at a reset that it did not ask for', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 141=Y | trouble reset_not_asked_for, out 3 in 1, > 5.2 58=ResetSeqNumFlag was not asked for, closed, ended: LogonRefused: ResetSeqNumFlag was not asked for, note A.1 refused
    `));

  it('a connection of the FIX session ends with a Logout at a Logon whose number is too low', () =>
    follows(
      `
      begin | out 2 in 3, > A.1
      A 2 | trouble number_too_low, out 3 in 3, > 5.2 58=MsgSeqNum too low, expecting 3 but received 2, closed, ended: LogonRefused: MsgSeqNum too low, expecting 3 but received 2, note A.2 refused
    `,
      { nextIn: 3 },
    ));

  it('a connection of the FIX session ends at bytes that are no message before the Logon', () =>
    follows(`
      begin | out 2 in 1, > A.1
      garbage | trouble garbage, closed, ended: Disconnect: bytes that are no FIX message, before the Logon, note .0 unreadable
    `));

  it('a connection of the FIX session goes on behind bytes that are no message, and ends at a length that no message has, with all before it stored', () =>
    follows(`
      ${up}
      garbage | trouble garbage, note .0 unreadable
      8 3 | in 4: 8.3, note 8.3 applied
      8 4 & long | in 5: 8.4, trouble too_long, closed, down, ended: Disconnect: a message of the other side is too long, note 8.4 applied, note .0 unreadable
    `));

  it('a connection of the FIX session ends when a message names somebody else, without its number', () =>
    follows(`
      ${up}
      8 3 49=WHO | trouble not_ours, out 4 in 3, > 3.3 45=3 372=8 373=9, out 5 in 3, > 5.4 58=CompID problem, closed, down, in 3, ended: Disconnect: CompID problem, note 8.3 refused
    `));

  it('a connection of the FIX session ends when the clock of a message is wrong, without its number', () =>
    follows(`
      ${up}
      8 3 52=20300101-00:00:00 | trouble not_ours, out 4 in 3, > 3.3 45=3 372=8 373=10, out 5 in 3, > 5.4 58=SendingTime accuracy problem, closed, down, in 3, ended: Disconnect: SendingTime accuracy problem, note 8.3 refused
    `));

  it('a connection of the FIX session rejects a message of the application that it does not know, and gives the record all that the record may know', () =>
    follows(`
      ${up}
      B 3 | trouble unsupported, out 4 in 1, > j.3 45=3 372=B 380=3, in 4: B.3, note B.3 refused
      3 4 45=2 | trouble rejected, in 5: 3.4 of 1, note 3.4 applied
      3 5 45=9 | trouble rejected, in 6: 3.5, note 3.5 applied
      3 6 45=2 372=D | trouble rejected, in 7: 3.6 of D, note 3.6 applied
      j 7 | in 8: j.7, note j.7 applied
      9 8 | in 9: 9.8, note 9.8 applied
      AE 9 | trouble unsupported, out 5 in 9, > j.4 45=9 372=AE 380=3, in 10: AE.9, note AE.9 refused
      A 10 | note A.10 applied
    `));

  it('a connection of the FIX session applies messages of the types that it is set to, and notes them as applied', () =>
    follows(
      `
      ${up}
      B 3 | trouble unsupported, out 4 in 1, > j.3 45=3 372=B 380=3, in 4: B.3, note B.3 refused
      AE 4 | in 5: AE.4, note AE.4 applied
    `,
      { settings: { moreTypes: ['AE'] } },
    ));

  it('a connection of the FIX session rejects a message that cannot be read, and passes it over once', () =>
    follows(`
      ${up}
      8 3 x=1 | trouble garbage, out 4 in 1, in 4: 8.3 over, > 3.3 45=3 372=8 373=99, missed, note 8.3 unreadable
      8 4 | in 5: 8.4, note 8.4 applied
      1 5 x=1 | trouble garbage, out 5 in 5, in 6: 1.5 over, > 3.4 45=5 372=1 373=99, missed, note 1.5 unreadable
      8 6 | in 7: 8.6, note 8.6 applied
    `));

  it('a connection of the FIX session asks again for a message that cannot be read and came too early', () =>
    follows(`
      ${up}
      8 4 x=1 | trouble number_too_high, out 4 in 3, > 2.3 7=3 16=0, note 8.4 gap
      8 3 43=Y | in 4: 8.3, note 8.3 applied
      8 4 43=Y x=1 | trouble garbage, out 5 in 4, in 5: 8.4 over, > 3.4 45=4 372=8 373=99, missed, note 8.4 unreadable
    `));

  it('a connection of the FIX session ends when the record fails, and stores no number behind what the record lacks', () =>
    follows(
      `
      ${up}
      8 3 | closed, down, ended: Error: the record is away, note 8.3 not_applied
      8 4 |
    `,
      { failing: [1] },
    ));

  it('a connection of the FIX session has told of no message that was passed over when the record fails at it', () =>
    follows(
      `
      ${up}
      4 3 123=Y 36=6 | closed, down, in 6 over, ended: Error: the record is away, note 4.3 applied
      8 6 |
    `,
      { failing: [1] },
    ));

  it('a connection of the FIX session stores the number of the next message at its end', () =>
    follows(`
      ${up}
      1 3 112=x | out 4 in 4, > 0.3 112=x, note 1.3 applied
      close | closed, down, in 4, ended: Disconnect: the other side closed the connection
      send a | a unrecorded
    `));

  it('a connection of the FIX session ends with the error of its line', () =>
    follows(`
      ${up}
      1 3 112=x | out 4 in 4, > 0.3 112=x, note 1.3 applied
      break | closed, down, in 4, ended: Error: the line broke
    `));

  it('a connection of the FIX session ends when its Logon is not answered in time', () =>
    follows(`
      begin | out 2 in 1, > A.1
      +5000 |
      +100 | closed, ended: Disconnect: the Logon was not answered
    `));

  it('a connection of the FIX session tests again after a time until it is up, and takes the answer to any of its tests', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      +3000 |
      +100 | out 4 in 2, > 1.3 112=ready-2
      +3000 |
      +100 | out 5 in 2, > 1.4 112=ready-3
      0 2 112=ready-2 | up, note 0.2 applied
      +3200 |
    `));

  it('a connection of the FIX session does not test while messages are missing', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 3 | trouble number_too_high, out 3 in 1, > 1.2 112=ready-1, out 4 in 1, > 2.3 7=1 16=0, note A.3 applied
      +3100 |
      8 1 43=Y | in 2: 8.1, note 8.1 applied
      8 2 43=Y | in 3: 8.2, note 8.2 applied
      4 3 43=Y 123=Y 36=4 | out 5 in 4, > 1.4 112=ready-2, note 4.3 applied
      0 4 112=ready-1 | up, note 0.4 applied
    `));

  it('a connection of the FIX session sends a Heartbeat when it has written nothing for so long, and no earlier', () =>
    follows(`
      ${up}
      +10000 |
      +100 | out 4 in 3, > 0.3
      0 3 | note 0.3 applied
      +9900 |
      send a | out 5 in 4 a, > D.4 11=a, a written
      +10000 | out 6 in 4, > 1.5 112=quiet-22200
      +100 |
    `));

  it('a connection of the FIX session tests an other side that says nothing, and ends when it still does', () =>
    follows(`
      ${up}
      +11900 | out 4 in 3, > 0.3
      0 3 | note 0.3 applied
      +12000 | out 5 in 4, > 0.4
      +100 | out 6 in 4, > 1.5 112=quiet-24000
      0 4 | note 0.4 applied
      +12000 | out 7 in 5, > 0.6
      +100 | out 8 in 5, > 1.7 112=quiet-36100
      +11900 | out 9 in 5, > 0.8
      +100 | trouble silent, closed, down, in 5, ended: Disconnect: the other side is silent
    `));

  it('a connection of the FIX session ends when nothing of what is missing comes in time', () =>
    follows(`
      ${up}
      8 5 | trouble number_too_high, out 4 in 3, > 2.3 7=3 16=0, note 8.5 gap
      +7000 |
      +100 | closed, down, in 3, ended: Disconnect: what was missing was not sent again
    `));

  it('a connection of the FIX session asks for the rest when a part has come and nothing follows, and ends when nothing does', () =>
    follows(`
      ${up}
      8 6 | trouble number_too_high, out 4 in 3, > 2.3 7=3 16=0, note 8.6 gap
      8 3 43=Y | in 4: 8.3, note 8.3 applied
      +400 |
      +100 | out 5 in 4, > 2.4 7=4 16=0
      +100 |
      8 2 43=Y | note 8.2 duplicate
      +6900 |
      +100 |
      +100 | closed, down, ended: Disconnect: what was missing was not sent again
    `));

  it('a connection of the FIX session asks for so many at once as it is set to', () =>
    follows(
      `
      begin | out 2 in 1, > A.1
      A 6 | trouble number_too_high, out 3 in 1, > 1.2 112=ready-1, out 4 in 1, > 2.3 7=1 16=2, note A.6 applied
      8 1 43=Y | in 2: 8.1, note 8.1 applied
      8 2 43=Y | in 3: 8.2, out 5 in 2, > 2.4 7=3 16=4, note 8.2 applied
      8 3 43=Y | in 4: 8.3, note 8.3 applied
      8 4 43=Y | in 5: 8.4, out 6 in 4, > 2.5 7=5 16=6, note 8.4 applied
      8 5 43=Y | in 6: 8.5, note 8.5 applied
      state | receiving
    `,
      { settings: { resendChunk: 2 } },
    ));

  it('a connection of the FIX session stores the number behind a Logon that resets, before anything follows', () =>
    follows(
      `
      begin | out 2 in 1, > A.1 141=Y
      A 1 141=Y | in 2, out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      0 2 112=ready-1 | up, note 0.2 applied
    `,
      { resets: true },
    ));

  it('a connection of the FIX session counts what was between two connections as passed over where every Logon resets', () =>
    follows(
      `
      begin | out 2 in 1, > A.1 141=Y
      A 1 | in 2 over, out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      0 2 112=ready-1 | up, missed, note 0.2 applied
    `,
      { settings: { resetsOnLogon: true }, resets: true },
    ));

  it('a connection of the FIX session fills at once what the Logon says is lacking, and waits for what is sent without a request', () =>
    follows(
      `
      begin | out 6 in 1, > A.5 789=1
      A 6 789=3 | trouble number_too_high, out 7 in 1, > 4.3 again 123=Y 36=6, filled 3-5, > 1.6 112=ready-1, out 8 in 1, > 1.7 112=ready-2, note A.6 applied
      8 1 43=Y | in 2: 8.1, note 8.1 applied
      4 2 43=Y 123=Y 36=7 | out 9 in 2, > 1.8 112=ready-3, in 7 over, note 4.2 applied
      state | testing
      0 7 112=ready-3 | up, missed, note 0.7 applied
    `,
      { nextOut: 5, settings: { sendsNextExpected: true } },
    ));

  it('a connection of the FIX session refuses a Logon that expects a number which was never written', () =>
    follows(
      `
      begin | out 6 in 1, > A.5 789=1
      A 1 789=7 | trouble number_too_low, out 7 in 1, > 5.6 58=NextExpectedMsgSeqNum too high, expecting 6 but received 7, closed, ended: LogonRefused: NextExpectedMsgSeqNum too high, expecting 6 but received 7, note A.1 refused
    `,
      { nextOut: 5, settings: { sendsNextExpected: true } },
    ));

  it('a connection of the FIX session ends at once, and writes no Logout, when another process has the session', () =>
    follows(`
      ${up}
      lose |
      send a | out 4 in 3 a, unwritten a, a unwritten
      +100 | closed, down, in 3, ended: Disconnect: another process has the session
    `));

  it('a connection of the FIX session logs out when its hours are over', () =>
    follows(`
      ${up}
      send a | out 4 in 3 a, > D.3 11=a, a written
      over |
      +100 | out 5 in 3, > 5.4 58=the session is over
      +100 |
      send b | b unrecorded
      5 3 | closed, down, in 4, ended, note 5.3 applied
    `));

  it('a connection of the FIX session has the keeper of passwords know that a Logon was accepted, before the session goes on', () =>
    follows(
      `
      begin | out 2 in 1, > A.1
      A 1 1409=2 | password accepted 2, out 3 in 2, > 1.2 112=ready-1, note A.1 applied
    `,
      { showsAnswers: true },
    ));

  it('a connection of the FIX session has the keeper of passwords know that a Logon was refused, before it ends', () =>
    follows(
      `
      begin | out 2 in 1, > A.1
      5 1 1409=8 | password refused 8, trouble logon_refused, closed, ended: LogonRefused: the Logon was refused: no reason was given, note 5.1 applied
    `,
      { showsAnswers: true },
    ));

  it('a connection of the FIX session has the keeper of passwords know that a Logon was accepted whose numbers are wrong', () =>
    follows(
      `
      begin | out 2 in 3, > A.1
      A 2 | password accepted none, trouble number_too_low, out 3 in 3, > 5.2 58=MsgSeqNum too low, expecting 3 but received 2, closed, ended: LogonRefused: MsgSeqNum too low, expecting 3 but received 2, note A.2 refused
    `,
      { showsAnswers: true, nextIn: 3 },
    ));

  it('a connection of the FIX session tells the keeper of passwords nothing at another message', () =>
    follows(
      `
      begin | out 2 in 1, > A.1
      8 1 | closed, ended: Disconnect: the first message of the other side is no Logon, note 8.1 applied
    `,
      { showsAnswers: true },
    ));

  it('a connection of the FIX session ends when a message has no number, and rejects none', () =>
    follows(`
      ${up}
      8 0 | trouble not_ours, out 4 in 3, > 5.3 58=MsgSeqNum is missing, closed, down, in 3, ended: Disconnect: MsgSeqNum is missing, note 8.0 refused
    `));

  it('a connection of the FIX session passes over one number where a gap fill cannot be read', () =>
    follows(`
      ${up}
      4 3 123=Y 36=6 x=1 | trouble garbage, out 4 in 1, in 4: 4.3 over, > 3.3 45=3 372=4 373=99, missed, note 4.3 unreadable
      8 4 | in 5: 8.4, note 8.4 applied
    `));

  it('a connection of the FIX session tests again also when the last message that was missing came again', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      0 3 112=ready-1 | trouble number_too_high, out 4 in 2, > 2.3 7=2 16=0, note 0.3 gap
      8 4 | note 8.4 gap
      8 2 43=Y | in 3: 8.2, note 8.2 applied
      4 3 43=Y 123=Y 36=4 | note 4.3 applied
      8 4 43=Y | out 5 in 3, in 5: 8.4, > 1.4 112=ready-2, note 8.4 applied
      0 5 112=ready-2 | up, note 0.5 applied
    `));

  it('a connection of the FIX session ends when the other side closes the line before it is up', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      close | closed, in 2, ended: Disconnect: the other side closed the connection
    `));

  it('a connection of the FIX session ends when the commit under way is answered, and proves that its order was not written', () =>
    follows(`
      ${up}
      hold |
      send a | out 4 in 3 a
      break | closed, down
      release | unwritten a, a unwritten, in 3, ended: Error: the line broke
    `));

  it('a connection of the FIX session is up when a gap fill that begins before what is missing closes it, and not before', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      8 4 | trouble number_too_high, out 4 in 2, > 2.3 7=2 16=0, note 8.4 gap
      0 2 43=Y 112=ready-1 | note 0.2 applied
      state | receiving
      4 1 43=Y 123=Y 36=5 | in 5 over, up, missed, note 4.1 duplicate
    `));

  it('a connection of the FIX session counts a gap fill that came too early as messages that may be reports', () =>
    follows(`
      ${up}
      4 4 123=Y 36=6 | trouble number_too_high, out 4 in 3, > 2.3 7=3 16=0, note 4.4 gap
      8 3 43=Y | in 4: 8.3, note 8.3 applied
      4 4 43=Y 123=Y 36=5 | in 5 over, missed, note 4.4 applied
    `));

  it('a connection of the FIX session takes no order while it answers a Logout', () =>
    follows(`
      ${up}
      hold |
      5 3 | out 4 in 4
      send b | b unrecorded
      release | > 5.3, closed, down, in 4, ended: Disconnect: the other side logged out, note 5.3 applied
    `));

  it('a connection of the FIX session takes no order while it logs out with a reason', () =>
    follows(`
      ${up}
      hold |
      8 1 | trouble number_too_low, out 4 in 3
      send b | b unrecorded
      release | > 5.3 58=MsgSeqNum too low, expecting 3 but received 1, closed, down, in 3, ended: Disconnect: MsgSeqNum too low, expecting 3 but received 1, note 8.1 refused
    `));

  it('a connection of the FIX session counts the number of a reset as passed over', () =>
    follows(`
      ${up}
      4 3 36=4 | trouble numbers_reset, in 4 over, missed, note 4.3 applied
      8 4 | in 5: 8.4, note 8.4 applied
    `));

  it('a connection of the FIX session has stored that messages were passed over before it is up', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      8 4 | trouble number_too_high, out 4 in 2, > 2.3 7=2 16=0, note 8.4 gap
      4 2 43=Y 123=Y 36=5 & 0 5 112=ready-1 | out 5 in 1, > 1.4 112=ready-2, in 6 over, up, missed, note 4.2 applied, note 0.5 applied
      0 6 112=ready-2 | note 0.6 applied
    `));

  it('a connection of the FIX session is up with what came in the same moment stored', () =>
    follows(`
      begin | out 2 in 1, > A.1
      A 1 | out 3 in 2, > 1.2 112=ready-1, note A.1 applied
      8 2 & 4 3 123=Y 36=6 & 0 6 112=ready-1 | in 7: 8.2 over, up, missed, note 4.3 applied, note 8.2 applied, note 0.6 applied
    `));

  it('a connection of the FIX session gives its credentials and its new password with the Logon', () =>
    follows(
      `
      begin | out 2 in 1, > A.1 553=me 554=old 925=new
    `,
      { newPassword: 'new', settings: { username: 'me', password: () => 'old' } },
    ));
});
