import { WithdrawalReportKind } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { NotRun } from '../check.ts';
import type { CheckSession, SentWithdrawal } from '../session.ts';
import { refusedAgain } from './every-kind.ts';

type Fields = Partial<SentWithdrawal['request']>;

/** The destinations that the adapter states. */
export function destinations(session: CheckSession) {
  return session.once('withdrawal destinations', async () => {
    const { answer } = await session.call('Orders', 'getCapabilities', {});
    return answer?.withdrawalDestinations ?? [];
  });
}

/** Sends a withdrawal, once: to the first destination that the adapter states. */
export async function withdraw(
  session: CheckSession,
  fields: Fields = {},
  timeoutMs?: number,
): Promise<SentWithdrawal> {
  const [destination] = await destinations(session);
  if (destination === undefined) throw new NotRun('the adapter states no destination');
  const id = fields.clientWithdrawalId ?? session.newId();
  const request = {
    clientWithdrawalId: id,
    account: session.account,
    amountKobo: session.settings.withdrawKobo ?? 0n,
    destination,
    notAfter: session.inTime(),
    note: Buffer.from(`note of ${id}`),
    ...fields,
  } as SentWithdrawal['request'];
  const outcome = await session.call('Withdrawals', 'submitWithdrawal', request, timeoutMs);
  const sent = { id, request, outcome };
  session.withdrawals.push(sent);
  return sent;
}

/** Sends one that is accepted or paid. Throws `NotRun` if it is not. */
export async function taken(session: CheckSession): Promise<SentWithdrawal> {
  const sent = await withdraw(session);
  const { answer, exchange } = sent.outcome;
  if (answer?.report === undefined || answer.report.kind === WithdrawalReportKind.REJECTED) {
    throw new NotRun(`none was taken: ${exchange.status}`);
  }
  return sent;
}

/** Sends an id again, and throws unless it is refused. */
export async function withdrawAgain(session: CheckSession, first: SentWithdrawal, fields: Fields = {}): Promise<void> {
  const again = { ...first.request, notAfter: session.inTime(), ...fields, clientWithdrawalId: first.id };
  refusedAgain(first, await session.call('Withdrawals', 'submitWithdrawal', again as never));
}

export function lookUp(session: CheckSession, clientWithdrawalId: string, afterNumber = 0n) {
  return session.call('Withdrawals', 'lookUpWithdrawal', { clientWithdrawalId, afterNumber });
}
