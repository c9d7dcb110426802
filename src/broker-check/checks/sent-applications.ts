import { type ApplicationReport, ApplicationReportKind } from '../../gen/marina/broker/v1/applications_pb.ts';
import { NotRun } from '../check.ts';
import type { CheckSession, SentApplication } from '../session.ts';
import { refusedAgain } from './every-kind.ts';

type Fields = Partial<SentApplication['request']>;

/** An application of this run that was accepted. */
export interface Accepted extends SentApplication {
  readonly report: ApplicationReport;
}

/** Sends an application, once. */
export async function apply(session: CheckSession, given: Fields = {}): Promise<SentApplication> {
  const id = given.clientApplicationId ?? session.newId();
  const request = {
    clientApplicationId: id,
    fields: session.newFields(),
    notAfter: session.inTime(),
    note: Buffer.from(`note of ${id}`),
    ...given,
  } as SentApplication['request'];
  const outcome = await session.call('Applications', 'submitApplication', request);
  const sent = { id, request, outcome };
  session.applications.push(sent);
  return sent;
}

/** Sends one that is accepted. Throws `NotRun` if it is not. */
export async function accepted(session: CheckSession): Promise<Accepted> {
  const sent = await apply(session);
  const { answer, exchange } = sent.outcome;
  const report = answer?.report;
  if (report?.kind !== ApplicationReportKind.ACCEPTED) throw new NotRun(`none was accepted: ${exchange.status}`);
  return { ...sent, report };
}

/** Sends an id again, and throws unless it is refused. */
export async function applyAgain(session: CheckSession, first: SentApplication, given: Fields = {}): Promise<void> {
  const again = { ...first.request, notAfter: session.inTime(), ...given, clientApplicationId: first.id };
  refusedAgain(first, await session.call('Applications', 'submitApplication', again as never));
}

export function lookUp(session: CheckSession, clientApplicationId: string, afterNumber = 0n) {
  return session.call('Applications', 'lookUpApplication', { clientApplicationId, afterNumber });
}
