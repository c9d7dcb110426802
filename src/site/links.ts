import type { DescMessage, DescMethod, DescService } from '@bufbuild/protobuf';
import { Applications } from '../gen/marina/gateway/v1/applications_pb.ts';
import { DocumentSchema } from '../gen/marina/gateway/v1/documents_pb.ts';

/** Where the reference begins. Each service has a page below it. */
export const referencePath = '/docs/reference';

/** Where a service's operations and objects are described. */
export function servicePath({ name }: DescService): string {
  return `${referencePath}/${name.toLowerCase()}`;
}

/** Where an operation is described. */
export function operationHref({ parent, localName }: DescMethod): string {
  return `${servicePath(parent)}#${localName}`;
}

/** Where an object is described: with the service of its file. */
export function objectHref(desc: DescMessage): string {
  const service = desc.typeName === DocumentSchema.typeName ? Applications : desc.file.services[0];
  if (service === undefined) throw new Error(`no page describes ${desc.typeName}`);
  return `${servicePath(service)}#object-${desc.name}`;
}
