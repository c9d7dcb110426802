import { Metadata } from '@grpc/grpc-js';
import { operatorToken } from '../../support/gateway.ts';

/** What an operator's call carries. */
export function operatorMetadata(): Metadata {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${operatorToken}`);
  return metadata;
}
