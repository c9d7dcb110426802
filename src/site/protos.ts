import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { zipSync } from 'fflate';
import type { OperationRules } from '../gateway/edge/operations.ts';
import { file_google_rpc_error_details } from '../gen/google/rpc/error_details_pb.ts';
import { file_google_rpc_status } from '../gen/google/rpc/status_pb.ts';
import { file_marina_gateway_v1_errors } from '../gen/marina/gateway/v1/errors_pb.ts';
import { withDependencies } from '../kit/grpc-reflection.ts';

const folder = join(import.meta.dirname, '../../proto');
/** Every compiler has these files. */
const compilersOwn = 'google/protobuf/';
/** The same bytes for the same files, whenever they are made. */
const mtime = new Date(2000, 0, 1);

/** The sources of all messages and services that partners call, by the names under which they import each other. */
export function protoZip(operations: readonly OperationRules[]): Uint8Array {
  const names = files(operations)
    .map(({ proto }) => proto.name)
    .filter((name) => !name.startsWith(compilersOwn))
    .sort();
  return zipSync(Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name))])), { mtime });
}

/** The same as a `google.protobuf.FileDescriptorSet`, each file after those that it imports. */
export function descriptorSet(operations: readonly OperationRules[]): Uint8Array {
  const file = files(operations).map(({ proto }) => proto);
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
}

function files(operations: readonly OperationRules[]): DescFile[] {
  const called = operations.map(({ method }) => method.parent.file);
  // No method names the details of errors.
  const details = [file_marina_gateway_v1_errors, file_google_rpc_error_details, file_google_rpc_status];
  return [...withDependencies([...called, ...details])];
}
