import type { ServiceError } from '@grpc/grpc-js';
import { MarinaError } from '../site/snippets/client.mts';
import { Advice } from './advice.ts';
import { shownPath } from './files.ts';
import { isRunning } from './lock.ts';
import type { Sandbox } from './sandbox-file.ts';
import { logFile } from './settings.ts';

/** A claim of a demo did not hold, or did not come true in time. */
export class DidNotHold extends Error {
  override readonly name = 'DidNotHold';
}

/** Fails a demo, in the words of the rule, unless it holds. */
export function check(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new DidNotHold(`It does not hold: ${rule}.`);
}

/** Why a demo ended early, with what to do about it. A mistake of the demo's own stays as it is. */
export function adviceOn(failure: unknown, { pids, rest_url: restUrl }: Sandbox, dataDir: string): unknown {
  if (!(failure instanceof Error) || failure instanceof Advice) return failure;
  const parts = (['gateway', 'simulator', 'receiver'] as const).map((part) => shownPath(logFile(dataDir, part)));
  const logs = `The logs may say why: ${parts.join(', ')}`;
  if (pids.gateway === undefined || !isRunning(pids.gateway)) {
    return new Advice('The sandbox stopped meanwhile.', `${logs}. Start it again in another terminal: make run`);
  }
  if (failure instanceof DidNotHold || failure instanceof MarinaError) return new Advice(failure.message, logs);
  const silence = silenceOf(failure);
  if (silence !== undefined) return new Advice(`The gateway at ${restUrl} does not answer: ${silence}.`, logs);
  if (isRefusedCall(failure)) return new Advice(`A call of the operator failed: ${failure.message}.`, logs);
  return failure;
}

/** Why a request got no answer. */
function silenceOf({ name, message, cause }: Error): string | undefined {
  if (name === 'TimeoutError') return 'it takes too long';
  const isLost = name === 'TypeError' && ['fetch failed', 'terminated'].includes(message);
  return isLost ? ((cause as Error | undefined)?.message ?? message) : undefined;
}

function isRefusedCall(failure: Error): failure is ServiceError {
  return 'code' in failure && 'details' in failure && 'metadata' in failure;
}
