import { oneOf, orNone, pemPath, type Setting, setting, text } from './settings.ts';

/** The paths of a link's files, and the name that the other end's certificate must have. */
export interface LinkFiles {
  readonly authorities: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** Undefined: the host. */
  readonly serverName: string | undefined;
}

/** The settings of a link's certificates. `link` as in the variables; `other`: the other end, in words. */
export function linkFileSettings(link: string, other: string) {
  const variable = (end: string) => `MARINA_${link}_TLS_${end}`;
  return {
    authorities: pemPath(
      variable('CA_FILE'),
      `the authorities that ${other}'s certificate may be from; none: those that Node trusts`,
    ),
    certificate: pemPath(variable('CERT_FILE'), `the certificate that the gateway shows to ${other}`),
    key: pemPath(variable('KEY_FILE'), "that certificate's private key"),
    serverName: setting(
      variable('SERVER_NAME'),
      `the name in ${other}'s certificate, if it is not the host`,
      '',
      orNone(text(/^(?!\d+(\.\d+){3}$)[A-Za-z0-9_][A-Za-z0-9_.-]*$/, 'a host name')),
    ),
  };
}

/** The same with the switch, for a link whose URL does not say whether it speaks TLS. */
export function linkSettings(link: string, other: string) {
  const tls: Setting<'off' | 'required'> = setting(
    `MARINA_${link}_TLS`,
    `whether the link to ${other} must speak TLS; its certificate and name are always checked`,
    'off',
    oneOf('off', 'required'),
  );
  return { tls, ...linkFileSettings(link, other) };
}

/** Returns the faults of a link's settings together. `how`: what switches its TLS on. */
export function linkProblems(link: string, files: LinkFiles, speaksTls: boolean, how: string): string[] {
  const { authorities, certificate, key, serverName } = files;
  const variable = (end: string) => `MARINA_${link}_TLS_${end}`;
  const problems: string[] = [];
  if ((certificate === undefined) !== (key === undefined)) {
    problems.push(`${variable('CERT_FILE')} and ${variable('KEY_FILE')} must be set together`);
  }
  const given = Object.entries({
    CA_FILE: authorities,
    CERT_FILE: certificate,
    KEY_FILE: key,
    SERVER_NAME: serverName,
  });
  const [idle] = given.find(([, value]) => value !== undefined) ?? [];
  if (idle !== undefined && !speaksTls) problems.push(`${variable(idle)} has no effect without ${how}`);
  return problems;
}
