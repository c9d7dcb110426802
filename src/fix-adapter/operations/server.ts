import { setTimeout as delay } from 'node:timers/promises';
import { createAdminServer } from '../../gateway/operators/calls/server.ts';
import type { Database } from '../../gateway/store/database.ts';
import { addressShower } from '../../kit/addresses.ts';
import { openSecret } from '../../kit/link.ts';
import type { Logger } from '../../kit/log.ts';
import { warnOfTokensWithoutRole } from '../../kit/operator-tokens.ts';
import { IdentityCredentials, openIdentity } from '../../kit/server-identity.ts';
import type { Worker } from '../../kit/worker.ts';
import { type ActiveSession, operationsService } from './service.ts';
import type { OperationConfig } from './settings.ts';

export interface OperatorsOptions {
  readonly config: OperationConfig;
  readonly database: Database;
  /** Undefined while another process has the session. */
  readonly active: () => ActiveSession | undefined;
  readonly now: () => number;
  readonly log: Logger;
  /** Called at a call's end, with its service and method and the name of its gRPC status. */
  readonly onCalled: (call: string, code: string) => void;
}

/** The operators' port of a process. */
export interface Operators {
  readonly port: number;
  /** Workers that read changed certificates and tokens. */
  readonly workers: readonly Worker[];
  close(graceMs: number): Promise<void>;
}

/** Opens the operators' port: gRPC with reflection, health checks and named tokens, like that of a gateway. */
export async function openOperators(options: OperatorsOptions): Promise<Operators> {
  const { config, database, active, now, log, onCalled } = options;
  const { adminTlsCertificate: certificate, adminTlsKey: key, adminTlsAuthorities: authorities } = config;
  const tokens = await openSecret({ name: 'operator tokens', secret: config.operators, log });
  const identity = await openIdentity('operators', { certificate, key, authorities }, log);
  const server = createAdminServer({
    services: [operationsService({ database, active, now, pause: (ms) => delay(ms) })],
    ...{ tokens, log, onCalled },
    // The protos require it where it matters.
    needsReason: false,
    shownAddress: addressShower('network'),
    credentials: identity && new IdentityCredentials(identity),
  });
  // The certificate of an open connection is not checked again.
  identity?.onChange(({ ca }) => {
    if (ca !== undefined) server.reconnect();
  });
  const port = await server.listen(config.adminPort, config.adminHost);
  log.info({ port }, 'operators are answered');
  warnOfTokensWithoutRole(tokens, log);
  return {
    port,
    workers: [tokens.worker, ...(identity === undefined ? [] : [identity.worker])],
    close: (graceMs) => server.close(graceMs),
  };
}
