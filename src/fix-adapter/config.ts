import { readFileSync } from 'node:fs';
import { databaseAddress } from '../gateway/store/address.ts';
import type { LinkTlsConfig } from '../kit/link.ts';
import { type LinkFiles, linkProblems, linkSettings } from '../kit/link-settings.ts';
import {
  ConfigError,
  changingSecret,
  describeSettings,
  oneOf,
  orNone,
  pemPath,
  reading,
  readSettings,
  type Setting,
  setting,
  text,
  unknownVariables,
  type ValuesOf,
  wholeNumber,
  yesOrNo,
} from '../kit/settings.ts';
import { dropCopyProblems, dropCopySettings } from './drop-copy/settings.ts';
import { messageSettings } from './messages/settings.ts';
import { operationProblems, operationSettings } from './operations/settings.ts';
import { maxNameLength, minNameLength } from './orders/names.ts';
import { parseRejectReasons, type ReasonRule } from './orders/reject-reasons.ts';
import {
  type CalendarDay,
  parseCalendar,
  parseDays,
  type Schedule,
  type SessionHours,
  timeOf,
} from './session/schedule.ts';
import type { OrderTemplate } from './template/parse.ts';
import { readTemplate, templateSettings } from './template/settings.ts';

const prefix = 'MARINA_FIX_';

const hostPort = text(/^.+:\d+$/, 'host:port');
const passwordText = text(/^[ -~]{1,128}$/, 'at most 128 characters');
/** A name in a FIX header. */
const name = text(/^[!-<>-~]{1,64}$/, '1 to 64 characters without spaces and `=`');
const timeOfDay = text(/^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/, 'a time in Lagos, such as 08:30');
/** The adapter's settings, from environment variables. */
const settings = {
  addresses: setting(
    'MARINA_FIX_ADDRESS',
    "the exchange's or broker's FIX engine, and those of its recovery sites behind it, with commas between them",
    undefined,
    reading('one or more host:port with commas between them', parseAddresses),
  ),
  version: setting(
    'MARINA_FIX_VERSION',
    'the session protocol: FIXT.1.1 carries FIX 5.0 SP2',
    'FIXT.1.1',
    oneOf('FIXT.1.1', 'FIX.4.4'),
  ),
  senderCompId: setting('MARINA_FIX_SENDER_COMP_ID', 'our name in the session (SenderCompID)', undefined, name),
  targetCompId: setting('MARINA_FIX_TARGET_COMP_ID', "the exchange's name (TargetCompID)", undefined, name),
  username: setting('MARINA_FIX_USERNAME', 'the Username of the Logon', '', orNone(name)),
  password: setting('MARINA_FIX_PASSWORD', 'the Password of the Logon', '', changingSecret(orNone(passwordText))),
  newPassword: setting(
    'MARINA_FIX_NEW_PASSWORD',
    'what the password should become: it is sent once with the next Logon (NewPassword), and is the password once the exchange says so',
    '',
    changingSecret(orNone(passwordText)),
  ),
  heartbeatSeconds: setting(
    'MARINA_FIX_HEARTBEAT_SECONDS',
    'the time between heartbeats (HeartBtInt)',
    '30',
    wholeNumber(1, 300),
  ),
  sessionDays: setting(
    'MARINA_FIX_SESSION_DAYS',
    'the days on which a session begins, as names and ranges: mon-fri, or mon,tue,thu',
    'mon-fri',
    reading('days such as mon-fri or mon,tue,thu', parseDays),
  ),
  sessionStart: setting(
    'MARINA_FIX_SESSION_START',
    'when the session begins, and its numbers with it',
    '00:00',
    timeOfDay,
  ),
  sessionEnd: setting(
    'MARINA_FIX_SESSION_END',
    'when it ends; at a time before its start, it ends on the next day',
    '23:59:59',
    timeOfDay,
  ),
  calendarFile: setting(
    'MARINA_FIX_CALENDAR_FILE',
    'a file with the days that differ, one a line: 2026-12-25 closed, 2026-12-24 12:30 (another end), 2027-01-02 09:00-13:00 (other hours); read at the start',
    '',
    orNone(text(/./, 'the path of a file')),
  ),
  resetsByLogon: setting(
    'MARINA_FIX_RESETS_BY_LOGON',
    'whether the first Logon of a session says that numbers begin at 1 again (ResetSeqNumFlag), where the exchange does not reset them by itself',
    'false',
    yesOrNo(),
  ),
  resetsOnLogon: setting(
    'MARINA_FIX_RESET_ON_LOGON',
    'whether the exchange begins its numbers at 1 with every Logon (ResetSeqNumFlag); what it reports while there is no connection is then lost, and asked about',
    'false',
    yesOrNo(),
  ),
  sendsNextExpected: setting(
    'MARINA_FIX_NEXT_EXPECTED',
    'whether each Logon says which message is expected next (NextExpectedMsgSeqNum), and the exchange sends what is missing without being asked',
    'false',
    yesOrNo(),
  ),
  resendChunk: setting(
    'MARINA_FIX_RESEND_CHUNK',
    'how many messages a ResendRequest asks for; 0: all that are missing',
    '0',
    wholeNumber(0, 100_000),
  ),
  logonTries: setting(
    'MARINA_FIX_LOGON_TRIES',
    'how many Logons in a row may be refused before no other one is sent, because brokers lock users who try on',
    '3',
    wholeNumber(1, 1_000),
  ),
  messagesPerSecond: setting(
    'MARINA_FIX_MESSAGES_PER_SECOND',
    'how many orders, cancels and status requests the exchange takes within MARINA_FIX_THROTTLE_WINDOW_MS',
    '100',
    wholeNumber(1, 10_000),
  ),
  throttleWindowMs: setting(
    'MARINA_FIX_THROTTLE_WINDOW_MS',
    'the time in which the exchange takes so many messages, in milliseconds: never more in any such time',
    '1000',
    wholeNumber(100, 60_000),
  ),
  priceUnit: setting('MARINA_FIX_PRICE_UNIT', 'the unit of prices in the session', 'naira', oneOf('naira', 'kobo')),
  asksMassStatus: setting(
    'MARINA_FIX_MASS_STATUS',
    'whether the exchange answers OrderMassStatusRequest, which is then asked after each Logon',
    'true',
    yesOrNo(),
  ),
  absenceProofMs: setting(
    'MARINA_FIX_ABSENCE_PROOF_MS',
    'the time after which an answer "unknown order" proves that the exchange never had an order, in milliseconds, where the counterparty certifies that by then it knows each order that it has read and forgets none; 0: such an answer proves nothing',
    '0',
    wholeNumber(0, 3_600_000),
  ),
  cancelTimeoutMs: setting(
    'MARINA_FIX_CANCEL_TIMEOUT_MS',
    'how long the exchange may take to answer a request to cancel, in milliseconds; after that the next call to cancel sends another one',
    '5000',
    wholeNumber(100, 600_000),
  ),
  ...templateSettings,
  clOrdIdLength: setting(
    'MARINA_FIX_CL_ORD_ID_LENGTH',
    'how many characters the exchange takes in a ClOrdID; below 30, orders have short ones',
    String(maxNameLength),
    wholeNumber(minNameLength, maxNameLength),
  ),
  rejectReasonsFile: setting(
    'MARINA_FIX_REJECT_REASONS_FILE',
    "a file that says which of our reasons the exchange's rejections have, by OrdRejReason, BusinessRejectReason and Text: docs/FIX.md has its form; none: by the standard values",
    '',
    orNone(text(/./, 'the path of a file')),
  ),
  symbolsFile: setting(
    'MARINA_FIX_SYMBOLS_FILE',
    "a file with the exchange's names of symbols, one a line as OURS=THEIRS; by default they are the same",
    '',
    orNone(text(/./, 'the path of a file')),
  ),
  databaseUrl: setting(
    'MARINA_FIX_DATABASE_URL',
    "the adapter's own database: mysql://user:password@host:port/name",
    undefined,
    changingSecret(
      reading('a mysql:// URL', (url) => {
        if (databaseAddress(url).database === '') throw new Error('must name a database after the host');
        return url;
      }),
    ),
  ),
  backOfficeAddress: setting(
    'MARINA_FIX_BACK_OFFICE_ADDRESS',
    'the gRPC service of the broker to which everything is passed that FIX does not have',
    undefined,
    hostPort,
  ),
  host: setting('MARINA_FIX_HOST', 'the address that gateways call', '127.0.0.1', text(/.+/, 'an address')),
  port: setting(
    'MARINA_FIX_PORT',
    'the gRPC port that gateways call; 0: any free one',
    '50061',
    wholeNumber(0, 65_535),
  ),
  tlsCertificate: pemPath('MARINA_FIX_TLS_CERT_FILE', 'the certificate of that port; none: it speaks plain text'),
  tlsKey: pemPath('MARINA_FIX_TLS_KEY_FILE', "that certificate's private key"),
  tlsAuthorities: pemPath(
    'MARINA_FIX_TLS_CLIENT_CA_FILE',
    "the authorities of gateways' certificates; none: they need no certificate",
  ),
  opsHost: setting('MARINA_FIX_OPS_HOST', 'the address of the operations port', '127.0.0.1', text(/.+/, 'an address')),
  opsPort: setting(
    'MARINA_FIX_OPS_PORT',
    'the operations port (health, metrics); 0: any free one',
    '9465',
    wholeNumber(0, 65_535),
  ),
  ...messageSettings,
  ...dropCopySettings,
  ...operationSettings,
  logLevel: setting(
    'MARINA_FIX_LOG_LEVEL',
    'the least level of log lines',
    'info',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
};

const links = {
  session: linkSettings('FIX_SESSION', 'the FIX engine'),
  database: linkSettings('FIX_DATABASE', 'the database'),
  backOffice: linkSettings('FIX_BACK_OFFICE', 'the back office'),
};

const allSettings: Readonly<Record<string, Setting<unknown>>> = Object.fromEntries(
  [settings, ...Object.values(links)].flatMap((some) => Object.values(some).map((each) => [each.variable, each])),
);

export type FixConfig = Omit<
  ValuesOf<typeof settings>,
  'symbolsFile' | 'calendarFile' | 'rejectReasonsFile' | 'orderFields' | 'orderTemplateFile'
> & {
  readonly schedule: Schedule;
  readonly symbols: ReadonlyMap<string, string>;
  readonly orderTemplate: OrderTemplate;
  readonly rejectReasons: readonly ReasonRule[];
  readonly links: Readonly<Record<keyof typeof links, LinkTlsConfig>>;
};

/** Reads and checks all settings. Throws all problems at once. */
export function readFixConfig(variables: NodeJS.ProcessEnv): FixConfig {
  const problems = unknownVariables(prefix, allSettings, variables);
  const { symbolsFile, calendarFile, rejectReasonsFile, orderFields, orderTemplateFile, ...values } = readSettings(
    settings,
    variables,
    problems,
  );
  const { orderLookupFile, sessionDays: days, sessionStart: start, sessionEnd: end } = values;
  const config = {
    ...values,
    schedule: { days, start, end, calendar: readCalendar(calendarFile, { start, end }, problems) },
    symbols: readSymbols(symbolsFile, problems),
    rejectReasons: readReasons(rejectReasonsFile, problems),
    orderTemplate: readTemplate({ orderFields, orderTemplateFile, orderLookupFile }, problems),
    links: {
      session: linkOf('FIX_SESSION', readSettings(links.session, variables, problems), problems),
      database: linkOf('FIX_DATABASE', readSettings(links.database, variables, problems), problems),
      backOffice: linkOf('FIX_BACK_OFFICE', readSettings(links.backOffice, variables, problems), problems),
    },
  };
  if ((config.tlsCertificate === undefined) !== (config.tlsKey === undefined)) {
    problems.push('MARINA_FIX_TLS_CERT_FILE and MARINA_FIX_TLS_KEY_FILE must be set together');
  }
  problems.push(...operationProblems(config), ...dropCopyProblems(config));
  if (start !== undefined && end !== undefined && timeOf(start) === timeOf(end)) {
    problems.push('MARINA_FIX_SESSION_START and MARINA_FIX_SESSION_END must differ');
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}

/** Every setting with its default, range and meaning, as text. */
export function describeFixConfig(): string {
  return describeSettings(allSettings);
}

function linkOf(link: string, { tls, ...files }: LinkFiles & { tls: string }, problems: string[]): LinkTlsConfig {
  const speaksTls = tls === 'required';
  problems.push(...linkProblems(link, files, speaksTls, `MARINA_${link}_TLS=required`));
  return { ...files, speaksTls };
}

function readReasons(file: string | undefined, problems: string[]): readonly ReasonRule[] {
  if (file === undefined) return [];
  try {
    return parseRejectReasons(readFileSync(file, 'utf8'));
  } catch (error) {
    problems.push(`MARINA_FIX_REJECT_REASONS_FILE ${(error as Error).message}`);
    return [];
  }
}

function parseAddresses(value: string): readonly string[] {
  const addresses = value.split(',').map((each) => each.trim());
  if (!addresses.every((each) => /^.+:\d+$/.test(each))) throw new Error('must be host:port with commas between them');
  if (new Set(addresses).size < addresses.length) throw new Error('must name each address once');
  return addresses;
}

function readCalendar(
  file: string | undefined,
  usual: SessionHours,
  problems: string[],
): ReadonlyMap<string, CalendarDay> {
  if (file === undefined) return new Map();
  try {
    return parseCalendar(readFileSync(file, 'utf8'), usual);
  } catch (error) {
    problems.push(`MARINA_FIX_CALENDAR_FILE ${(error as Error).message}`);
    return new Map();
  }
}

function readSymbols(file: string | undefined, problems: string[]): ReadonlyMap<string, string> {
  if (file === undefined) return new Map();
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    const pairs = lines
      .filter((line) => line.trim() !== '' && !line.startsWith('#'))
      .map((line): [string, string] => {
        const [, ours, theirs] = /^\s*([!-<>-~]+)=([!-~]+)\s*$/.exec(line) ?? [];
        if (ours === undefined || theirs === undefined) throw new Error('must have lines as OURS=THEIRS');
        return [ours, theirs];
      });
    const symbols = new Map(pairs);
    if (symbols.size < pairs.length) throw new Error('must name each symbol once');
    if (new Set(symbols.values()).size < pairs.length) throw new Error('must not give two symbols one name');
    return symbols;
  } catch (error) {
    problems.push(`MARINA_FIX_SYMBOLS_FILE ${(error as Error).message}`);
    return new Map();
  }
}
