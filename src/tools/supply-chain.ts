/**
 * For `make check`: the packages that are deployed have licences that we may use, and no hole that the registry knows of.
 * With `sbom` and a file, for `make build`: writes the list of these packages to it, as CycloneDX.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { unknownLicences, whatTheAuditSays } from './packages-check.ts';

const [task, file = ''] = process.argv.slice(2);
if (task === 'sbom') writeSbom(file);
else check();

function check(): void {
  const unknown = unknownLicences(JSON.parse(readFileSync('package-lock.json', 'utf8')));
  for (const line of unknown) console.error(`licence not known to be good: ${line}`);
  const audit = whatTheAuditSays(
    npm('audit', '--omit=dev', '--audit-level=high', '--json', '--fetch-retries=0', '--fetch-timeout=20000').stdout,
  );
  console.log(audit.line);
  if (unknown.length > 0 || !audit.isGood) process.exitCode = 1;
}

function writeSbom(path: string): void {
  const { status, stdout } = npm(
    ...['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--omit=dev', '--package-lock-only'],
  );
  if (status !== 0) {
    console.log('No software bill of materials: npm 10 or newer is needed for it');
    return;
  }
  const bill = JSON.parse(stdout);
  // npm names it after the folder.
  bill.metadata.component.name = 'marina';
  writeFileSync(path, `${JSON.stringify(bill, null, 2)}\n`);
}

function npm(...args: string[]): { status: number | null; stdout: string } {
  return spawnSync('npm', args, { encoding: 'utf8', maxBuffer: 2 ** 26, stdio: ['ignore', 'pipe', 'ignore'] });
}
