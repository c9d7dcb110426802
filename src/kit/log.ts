import { type DestinationStream, type LogFn, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** The safety net: members that are never logged, at any depth. Code must not log secrets, personal fields or bodies. */
const redacted = [
  'authorization',
  'key',
  'secret',
  'token',
  'password',
  'body',
  'headers',
  'sql',
  'values',
  'parameters',
  'query',
  'fields',
  'content',
  'first_name',
  'firstName',
  'last_name',
  'lastName',
  'date_of_birth',
  'dateOfBirth',
  'email',
  'phone',
  'bvn',
  'nin',
];

/** A logger of JSON lines. A database error is written without its statement and values. */
export function createLogger(options: { name: string; level: string; destination?: DestinationStream }): Logger {
  const settings = {
    name: options.name,
    level: options.level,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: redacted.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
    serializers: { err: describeError },
    // Otherwise pino uses an error's message for a line without one, past the serializer.
    errorKey: 'thrown',
    hooks: {
      logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn) {
        const [first, ...rest] = args;
        if ((first as unknown) instanceof Error) method.apply(this, [{ err: first }, 'an error'] as never);
        else method.apply(this, [first, ...rest] as never);
      },
    },
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination);
}

/** The loggable part of an error: kind, stack, causes, and its message unless a database wrote it. */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code, errno } = error as NodeJS.ErrnoException;
  const fromDatabase = 'sqlState' in error || 'sql' in error;
  return {
    type: error.name,
    code,
    errno,
    message: fromDatabase ? undefined : error.message,
    stack: error.stack?.split('\n').filter((line) => line.startsWith('    at ')),
    cause: error.cause !== undefined && depth < 3 ? describeError(error.cause, depth + 1) : undefined,
  };
}
