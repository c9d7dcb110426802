import { ServerCredentials } from '@grpc/grpc-js';
import { handshakeTimeoutMs, type ServerIdentity } from './server-identity.ts';

/** A gRPC server's TLS, whose certificate changes when its files do. */
export class IdentityCredentials extends ServerCredentials {
  constructor(identity: ServerIdentity) {
    const { first } = identity;
    super({ requestCert: first.ca !== undefined, handshakeTimeout: handshakeTimeoutMs }, { ...first });
    identity.onChange((changed) => this.updateSecureContextOptions({ ...changed }));
  }

  override _equals(other: ServerCredentials): boolean {
    return other === this;
  }
}
