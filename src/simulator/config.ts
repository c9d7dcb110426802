import type { SimulatorConfig } from './simulator.ts';

/** A missing or wrong setting. */
export class SimulatorConfigError extends Error {
  override name = 'SimulatorConfigError';
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Reads and checks the simulator's settings. */
export function readConfig(environment: NodeJS.ProcessEnv): SimulatorConfig & { readonly logLevel: string } {
  const databaseUrl = environment.MARINA_SIMULATOR_DATABASE_URL ?? '';
  if (databaseUrl === '') throw new SimulatorConfigError('MARINA_SIMULATOR_DATABASE_URL is not set');
  const logLevel = environment.MARINA_LOG_LEVEL ?? 'info';
  if (!levels.includes(logLevel))
    throw new SimulatorConfigError(`MARINA_LOG_LEVEL must be one of ${levels.join(', ')}`);
  const hours = environment.MARINA_SIMULATOR_HOURS ?? 'always';
  if (hours !== 'always' && hours !== 'ngx')
    throw new SimulatorConfigError('MARINA_SIMULATOR_HOURS must be always or ngx');
  const delayMs = wholeNumber(environment, 'MARINA_SIMULATOR_FILL_DELAY_MS', 300, 0, 3_600_000);
  return {
    databaseUrl,
    host: environment.MARINA_SIMULATOR_HOST ?? '127.0.0.1',
    port: wholeNumber(environment, 'MARINA_SIMULATOR_PORT', 50_060, 0, 65_535),
    seed: wholeNumber(environment, 'MARINA_SIMULATOR_SEED', 1, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    defaultFillDelayMs: { min: Math.floor(delayMs / 2), max: Math.ceil((delayMs * 3) / 2) },
    clockErrorMs: wholeNumber(environment, 'MARINA_SIMULATOR_CLOCK_ERROR_MS', 0, -86_400_000, 86_400_000),
    keepsHours: hours === 'ngx',
    holidaysFile: environment.MARINA_SIMULATOR_HOLIDAYS_FILE || undefined,
    funds: fundsOf(environment),
    ...tlsFiles(environment),
    logLevel,
  };
}

/** Far more than a partner's limit of a day, so that only an absurd order is too large. */
const usualStartCashKobo = 1_000_000_000_000;
const usualSharesElsewhere = 1_000_000_000;
const maxStart = 1_000_000_000_000_000;

function fundsOf(environment: NodeJS.ProcessEnv): SimulatorConfig['funds'] {
  const checked = environment.MARINA_SIMULATOR_FUNDS ?? 'checked';
  if (checked !== 'checked' && checked !== 'unchecked') {
    throw new SimulatorConfigError('MARINA_SIMULATOR_FUNDS must be checked or unchecked');
  }
  const whole = (name: string, otherwise: number) => BigInt(wholeNumber(environment, name, otherwise, 0, maxStart));
  const startCashKobo = whole('MARINA_SIMULATOR_START_CASH_KOBO', usualStartCashKobo);
  const sharesElsewhere = whole('MARINA_SIMULATOR_SHARES_ELSEWHERE', usualSharesElsewhere);
  return checked === 'checked' ? { startCashKobo, sharesElsewhere } : undefined;
}

function tlsFiles(environment: NodeJS.ProcessEnv): Pick<SimulatorConfig, 'tls'> {
  const certificate = environment.MARINA_SIMULATOR_TLS_CERT_FILE ?? '';
  const key = environment.MARINA_SIMULATOR_TLS_KEY_FILE ?? '';
  const authorities = environment.MARINA_SIMULATOR_TLS_CLIENT_CA_FILE || undefined;
  if ((certificate === '') !== (key === '')) {
    throw new SimulatorConfigError(
      'MARINA_SIMULATOR_TLS_CERT_FILE and MARINA_SIMULATOR_TLS_KEY_FILE must be set together',
    );
  }
  return certificate === '' ? {} : { tls: { certificate, key, authorities } };
}

function wholeNumber(
  environment: NodeJS.ProcessEnv,
  name: string,
  otherwise: number,
  min: number,
  max: number,
): number {
  const given = environment[name];
  if (given === undefined || given === '') return otherwise;
  const value = Number(given);
  if (/^-?\d+$/.test(given) && value >= min && value <= max) return value;
  throw new SimulatorConfigError(`${name} must be a whole number from ${min} to ${max}`);
}
