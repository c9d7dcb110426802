/** Licences that permit what Marina does with packages: to use them unchanged, and to deploy them with itself. */
const goodLicences = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  // libvips, which stays a library of its own that everybody can replace.
  'LGPL-3.0-or-later',
  'MIT',
  'Unlicense',
]);

/** The part of `package-lock.json` that this file reads. */
export interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly license?: string }>>;
}

/** The packages that are deployed with a licence that is not known to be good, each with it. */
export function unknownLicences({ packages }: Lock): string[] {
  return Object.entries(packages)
    .filter(([path, { dev, license }]) => path !== '' && dev !== true && !isGood(license))
    .map(([path, { license }]) => `${path.replace(/^node_modules\//, '')} (${license ?? 'none'})`);
}

/** All parts of an expression with AND must be good. One with OR leaves the choice, and is to be looked at. */
function isGood(licence = ''): boolean {
  const parts = licence.replace(/^\((.*)\)$/, '$1').split(' AND ');
  return parts.every((part) => goodLicences.has(part));
}

/** Returns the findings of `npm audit --json`, as a line. A registry that cannot be asked is no reason to fail. */
export function whatTheAuditSays(output: string): { readonly isGood: boolean; readonly line: string } {
  const { auditReportVersion, vulnerabilities = {}, message } = parse(output);
  if (auditReportVersion === undefined) {
    const reason = message === undefined ? 'npm said nothing' : message.split('\n')[0];
    return { isGood: true, line: `Known holes were not looked for: the registry's audit cannot be asked (${reason})` };
  }
  const found = Object.values(vulnerabilities).filter(({ severity }) => ['high', 'critical'].includes(severity));
  if (found.length === 0)
    return { isGood: true, line: 'The registry knows of no serious hole in the deployed packages' };
  const names = found.map(({ name, severity, range }) => `${name} ${range} (${severity})`);
  return { isGood: false, line: `The registry knows of holes in deployed packages: ${names.join(', ')}` };
}

interface AuditReport {
  readonly auditReportVersion?: number;
  readonly vulnerabilities?: Readonly<Record<string, { name: string; severity: string; range: string }>>;
  readonly message?: string;
}

function parse(output: string): AuditReport {
  try {
    return JSON.parse(output) as AuditReport;
  } catch {
    return {};
  }
}
