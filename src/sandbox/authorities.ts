import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Advice } from './advice.ts';

/**
 * Puts the authority of the sandbox's receiver together with those of receivers that someone runs in addition, so that the
 * gateway sends to all of them. Answers with the file that has them.
 */
export function gatherAuthorities(dataDir: string, receiverFile: string, others: readonly string[]): string {
  if (others.length === 0) return receiverFile;
  const gathered = join(dataDir, 'webhook-authorities.pem');
  writeFileSync(gathered, [receiverFile, ...others].map((file) => `${readAuthorities(file).trimEnd()}\n`).join(''));
  return gathered;
}

function readAuthorities(file: string): string {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Advice(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`, advice);
  }
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Advice(`${file} holds no certificate in PEM.`, advice);
  return pem;
}

const advice = 'Put right, or unset, MARINA_WEBHOOK_CA_FILE and NODE_EXTRA_CA_CERTS.';
