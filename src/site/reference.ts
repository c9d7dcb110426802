import type { OperationRules } from '../gateway/edge/operations.ts';
import type { Comments } from './comments.ts';
import type { Examples } from './examples.ts';

/** All that the reference is made of. */
export interface Reference {
  /** In the order in which they are shown. */
  readonly operations: readonly OperationRules[];
  readonly comments: Comments;
  readonly examples: Examples;
}

/** Where partners reach the gateway. */
export interface GatewayAddresses {
  readonly baseUrl: string;
  /** A host and a port. It speaks TLS where REST does. */
  readonly grpcAddress: string;
  /** Whom partners ask: an e-mail address or a URL. */
  readonly support?: string | undefined;
}
