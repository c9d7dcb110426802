import { accountHandlers } from '../accounts/handlers.ts';
import { allocationHandlers } from '../allocations/handlers.ts';
import { applicationHandlers } from '../applications/handlers.ts';
import { eventHandlers } from '../events/handlers.ts';
import { Accounts } from '../gen/marina/gateway/v1/accounts_pb.ts';
import { Allocations } from '../gen/marina/gateway/v1/allocations_pb.ts';
import { Applications } from '../gen/marina/gateway/v1/applications_pb.ts';
import { Events as EventsService } from '../gen/marina/gateway/v1/events_pb.ts';
import { Keys } from '../gen/marina/gateway/v1/keys_pb.ts';
import { Limits } from '../gen/marina/gateway/v1/limits_pb.ts';
import { Orders } from '../gen/marina/gateway/v1/orders_pb.ts';
import { Reference } from '../gen/marina/gateway/v1/reference_pb.ts';
import { Sandbox } from '../gen/marina/gateway/v1/sandbox_pb.ts';
import { Wallet } from '../gen/marina/gateway/v1/wallet_pb.ts';
import { keyHandlers } from '../keys/handlers.ts';
import { limitHandlers } from '../limits/handlers.ts';
import { orderHandlers } from '../orders/handlers.ts';
import { referenceHandlers } from '../reference/handlers.ts';
import { sandboxHandlers } from '../sandbox/handlers.ts';
import { defineOperations, maxBodyBytes, type Operation } from '../transport/operations.ts';
import { walletHandlers } from '../wallet/handlers.ts';
import type { Base } from './base.ts';
import type { Callers } from './callers.ts';
import type { Events } from './events.ts';
import type { Notify } from './notifications.ts';
import type { Submissions } from './submissions.ts';
import type { Upstream } from './upstream.ts';

/** What the handlers of operations reach into. */
interface OperationParts {
  readonly callers: Callers;
  readonly events: Events;
  readonly upstream: Upstream;
  readonly submissions: Submissions;
  readonly notify: Notify;
}

/** Everything partners can call, service by service. */
export function createOperations(base: Base, parts: OperationParts): Operation[] {
  const { config, database, clock, ids, cursors, environment, keyMacSecret: macSecret } = base;
  const { readTimeoutMs } = config;
  const isPaused = () => environment.paused;
  const { keyUses, limits, reads } = parts.callers;
  const { broker, records, simulator } = parts.upstream;
  const { kinds, allKinds, submitter, canceller, contexts, images, documents } = parts.submissions;
  const submitted = { database, submitter, cursors, digestKey: base.key('request digests') };
  return [
    ...defineOperations(Orders, orderHandlers({ ...submitted, kind: kinds.order, broker, canceller, contexts })),
    ...defineOperations(Allocations, allocationHandlers({ ...submitted, kind: kinds.allocation })),
    ...defineOperations(Wallet, walletHandlers(database, cursors)),
    ...defineOperations(
      Applications,
      applicationHandlers({ ...submitted, kind: kinds.application, images, sender: documents }),
    ),
    ...defineOperations(Accounts, accountHandlers({ database, records, reads, cursors, clock })),
    ...defineOperations(Reference, referenceHandlers({ records, reads, readTimeoutMs, isPaused })),
    ...defineOperations(EventsService, eventHandlers({ database, cursors, feedWatch: parts.events.feedWatch })),
    ...defineOperations(Limits, limitHandlers(database, clock, limits, maxBodyBytes)),
    ...defineOperations(
      Keys,
      keyHandlers({ database, clock, ids, macSecret, cursors, uses: keyUses, ended: parts.notify.keyEnded }),
    ),
    ...(simulator === undefined
      ? []
      : defineOperations(Sandbox, sandboxHandlers({ database, kinds: allKinds, simulator, timeoutMs: readTimeoutMs }))),
  ];
}
