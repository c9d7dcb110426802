import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Authority, type Identity, makeAuthority } from '../../src/sandbox/certificates.ts';
import { temporaryFolder } from './folders.ts';

const dayMs = 86_400_000;

/** Certificates of a test in files: of a server that is `localhost` and 127.0.0.1, and of its client. */
export class CertificateFiles {
  readonly folder = temporaryFolder();
  /** The authorities of servers and of clients. */
  readonly serverAuthority = this.path('server-ca.pem');
  readonly clientAuthority = this.path('client-ca.pem');
  readonly server = { certificate: this.path('server.pem'), key: this.path('server.key') };
  readonly client = { certificate: this.path('client.pem'), key: this.path('client.key') };

  private constructor(
    readonly servers: Authority,
    readonly clients: Authority,
  ) {}

  static async make(): Promise<CertificateFiles> {
    const files = new CertificateFiles(await makeAuthority('servers'), await makeAuthority('clients'));
    files.put('server-ca.pem', files.servers.cert);
    files.put('client-ca.pem', files.clients.cert);
    files.putIdentity(files.server, await files.servers.issue(['localhost', '127.0.0.1']));
    files.putIdentity(files.client, await files.clients.issueClient('gateway'));
    return files;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Each file is whole whenever it is read. Returns its path. */
  put(name: string, text: string): string {
    const path = this.path(name);
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
    return path;
  }

  putIdentity({ certificate, key }: { certificate: string; key: string }, identity: Identity): void {
    for (const [path, text] of [
      [certificate, identity.cert],
      [key, identity.key],
    ] as const) {
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    }
  }

  /** A certificate of a server whose time ended yesterday. */
  expired(): Promise<Identity> {
    const end = Date.now() - dayMs;
    return this.servers.issue(['localhost', '127.0.0.1'], {
      notBefore: new Date(end - dayMs),
      notAfter: new Date(end),
    });
  }

  /** The settings of a link that trusts the server and shows the client's certificate. */
  settings(link: string): Record<string, string> {
    return {
      [`MARINA_${link}_TLS_CA_FILE`]: this.serverAuthority,
      [`MARINA_${link}_TLS_CERT_FILE`]: this.client.certificate,
      [`MARINA_${link}_TLS_KEY_FILE`]: this.client.key,
    };
  }
}
