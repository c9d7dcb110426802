import type { Database } from '../../gateway/store/database.ts';
import type { Logger } from '../../kit/log.ts';
import type { Live } from '../../kit/watched-files.ts';
import type { Worker } from '../../kit/worker.ts';
import { MessageLog } from './log.ts';
import { Masking } from './masking.ts';
import { retentionWorker } from './retention.ts';
import type { MessageTap } from './tap.ts';

const dayMs = 86_400_000;
const mebibyte = 1_048_576n;
/** How many former passwords are masked too: the other side may repeat one that was changed a moment ago. */
const maxSecrets = 10;

export interface OpenMessageLogOptions {
  readonly settings: {
    readonly messageDays: number;
    readonly messageMebibytes: number;
    readonly logsHeartbeats: boolean;
    readonly maskedTags: readonly number[];
  };
  readonly database: Database;
  readonly fence: bigint;
  /** The passwords of Logons. */
  readonly passwords: readonly Live<string | undefined>[];
  readonly now: () => number;
  readonly log: Logger;
  readonly onDropped: (count: number) => void;
}

/** The message log of the process that has the sessions. */
export interface OpenMessageLog {
  /** Undefined: messages are not logged. */
  readonly tap: ((startedAt: number) => MessageTap) | undefined;
  /** The same for the session of the drop copy. */
  readonly dropCopyTap: ((startedAt: number) => MessageTap) | undefined;
  readonly masking: Masking;
  readonly workers: readonly Worker[];
  /** Resolves when all messages up to now are written, at most after the given time. */
  written(timeoutMs: number): Promise<void>;
}

/** Opens the message log as it is set. */
export function openMessageLog({ settings, passwords, ...options }: OpenMessageLogOptions): OpenMessageLog {
  const { messageDays, messageMebibytes, logsHeartbeats, maskedTags } = settings;
  const masking = new Masking({ moreTags: maskedTags, secrets: secretsOf(passwords) });
  if (messageDays === 0)
    return { tap: undefined, dropCopyTap: undefined, masking, workers: [], written: async () => {} };
  const messages = new MessageLog({ ...options, masking, logsHeartbeats });
  const keptCharacters = BigInt(messageMebibytes) * mebibyte;
  const retention = retentionWorker({ ...options, keptMs: messageDays * dayMs, keptCharacters });
  return {
    tap: (startedAt) => messages.tap(startedAt),
    dropCopyTap: (startedAt) => messages.tap(startedAt, 'drop_copy'),
    masking,
    workers: [messages.worker, retention],
    written: (timeoutMs) => messages.written(timeoutMs),
  };
}

function secretsOf(passwords: readonly Live<string | undefined>[]): () => readonly string[] {
  let secrets: readonly string[] = [];
  const note = (secret: string | undefined) => {
    if (secret !== undefined) secrets = [secret, ...secrets.filter((one) => one !== secret)].slice(0, maxSecrets);
  };
  for (const password of passwords) {
    note(password.current);
    password.onChange(note);
  }
  return () => secrets;
}
