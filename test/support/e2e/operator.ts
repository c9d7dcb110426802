import { Metadata } from '@grpc/grpc-js';
import { operatorToken } from '../gateway.ts';

/** The metadata of an operator's call. */
export function operatorMetadata(): Metadata {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${operatorToken}`);
  return metadata;
}
