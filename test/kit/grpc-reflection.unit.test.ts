/** Server reflection, over a call that the test holds. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { create, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Server } from '@grpc/grpc-js';
import { Health } from '../../src/gen/grpc/health/v1/health_pb.ts';
import {
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from '../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { file_marina_gateway_v1_errors } from '../../src/gen/marina/gateway/v1/errors_pb.ts';
import { Orders } from '../../src/gen/marina/gateway/v1/orders_pb.ts';
import { field as fieldOption, file_marina_options_v1_options } from '../../src/gen/marina/options/v1/options_pb.ts';
import { addReflection, withDependencies } from '../../src/kit/grpc-reflection.ts';

/** A client's call of reflection. */
class Call extends EventEmitter {
  readonly steps: string[] = [];
  readonly answers: ServerReflectionResponse[] = [];
  written: () => void = () => {};

  write(answer: ServerReflectionResponse, done: () => void): void {
    this.steps.push('write');
    this.answers.push(answer);
    this.written = done;
  }

  pause(): void {
    this.steps.push('pause');
  }

  resume(): void {
    this.steps.push('resume');
  }

  end(): void {
    this.steps.push('end');
  }
}

type Definition = Record<string, { path: string }>;
type Implementation = Record<string, (call: Call) => void>;

function open() {
  const added: [Definition, Implementation][] = [];
  const addService = (definition: Definition, implementation: Implementation) =>
    added.push([definition, implementation]);
  addReflection({ addService } as unknown as Server, [Orders, Health, Orders], [file_marina_gateway_v1_errors]);
  return added;
}

function begin(): Call {
  const call = new Call();
  open()[0]?.[1].serverReflectionInfo?.(call);
  return call;
}

type Asked = Parameters<typeof create<typeof ServerReflectionRequestSchema>>[1];

function ask(messageRequest: NonNullable<Asked>['messageRequest']): ServerReflectionResponse['messageResponse'] {
  const call = begin();
  call.emit('data', create(ServerReflectionRequestSchema, { messageRequest }));
  const [answer] = call.answers;
  assert.ok(answer !== undefined);
  return answer.messageResponse;
}

/** The names of the files of an answer, in its order. */
function filesOf(response: ServerReflectionResponse['messageResponse']): string[] {
  assert.equal(response.case, 'fileDescriptorResponse');
  return response.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
}

describe('server reflection', () => {
  it('reflection is served under both of its versions', () => {
    assert.deepEqual(
      open().map(([definition]) => definition.serverReflectionInfo?.path),
      [
        '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
        '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
      ],
    );
  });

  it('reflection lists each service once, in order', () => {
    const response = ask({ case: 'listServices', value: '' });
    assert.equal(response.case, 'listServicesResponse');
    assert.deepEqual(
      response.value.service.map(({ name }) => name),
      ['grpc.health.v1.Health', 'marina.gateway.v1.Orders'],
    );
  });

  it('a file is found by its name and by each of its symbols, and comes before all that it imports', () => {
    const [own, ...imported] = filesOf(ask({ case: 'fileByFilename', value: 'marina/gateway/v1/orders.proto' }));
    assert.equal(own, 'marina/gateway/v1/orders.proto');
    assert.ok(imported.includes('google/protobuf/timestamp.proto'));
    assert.ok(imported.includes('google/protobuf/descriptor.proto'), 'a file that an imported file imports');
    assert.equal(new Set(imported).size, imported.length);
    for (const symbol of [
      'marina.gateway.v1.Orders',
      'marina.gateway.v1.Orders.CreateOrder',
      'marina.gateway.v1.Order',
      'marina.gateway.v1.Order.id',
      'marina.gateway.v1.OrderState',
    ]) {
      assert.deepEqual(filesOf(ask({ case: 'fileContainingSymbol', value: symbol }))[0], own, symbol);
    }
    const errors = filesOf(ask({ case: 'fileContainingSymbol', value: 'marina.gateway.v1.Error' }));
    assert.equal(errors[0], 'marina/gateway/v1/errors.proto', 'a file that no method names');
  });

  it('the options of a file are found as extensions, with their numbers', () => {
    const { number, extendee } = fieldOption;
    const containing = (containingType: string, extensionNumber: number) =>
      ask({ case: 'fileContainingExtension', value: { containingType, extensionNumber } });
    assert.equal(filesOf(containing(extendee.typeName, number))[0], file_marina_options_v1_options.proto.name);
    assert.equal(containing(extendee.typeName, 1).case, 'errorResponse');
    const numbers = ask({ case: 'allExtensionNumbersOfType', value: extendee.typeName });
    assert.equal(numbers.case, 'allExtensionNumbersResponse');
    assert.equal(numbers.value.baseTypeName, extendee.typeName);
    assert.ok(numbers.value.extensionNumber.includes(number));
    const none = ask({ case: 'allExtensionNumbersOfType', value: 'marina.gateway.v1.Order' });
    assert.deepEqual(none.case === 'allExtensionNumbersResponse' && none.value.extensionNumber, []);
  });

  it('a name that nobody has is not found, and an unknown request is told to be one', () => {
    for (const [request, code] of [
      [{ case: 'fileByFilename', value: 'none.proto' }, 5],
      [{ case: 'fileContainingSymbol', value: 'marina.gateway.v1.None' }, 5],
      [{ case: 'fileContainingExtension', value: { containingType: 'none', extensionNumber: 1 } }, 5],
      [{ case: 'allExtensionNumbersOfType', value: 'none' }, 5],
      [{ case: undefined }, 12],
    ] as const) {
      const response = ask(request);
      assert.equal(response.case, 'errorResponse');
      assert.equal(response.value.errorCode, code, request.case);
    }
  });

  it('an answer names its request, and the next request is read only when the answer is written', () => {
    const call = begin();
    const request = create(ServerReflectionRequestSchema, {
      host: 'here',
      messageRequest: { case: 'listServices', value: '*' },
    });
    call.emit('data', request);
    assert.deepEqual(call.steps, ['pause', 'write']);
    call.written();
    assert.deepEqual(call.steps, ['pause', 'write', 'resume']);
    const [answer] = call.answers;
    assert.deepEqual([answer?.validHost, answer?.originalRequest], ['here', request]);
    call.emit('error', new Error('the client left'));
    call.emit('end');
    assert.equal(call.steps.at(-1), 'end');
  });
});

it('files are named each once, and after those that they import', () => {
  const files = [...withDependencies([Orders.file, Health.file, Orders.file])];
  assert.equal(new Set(files).size, files.length);
  for (const file of files) {
    for (const each of file.dependencies) assert.ok(files.indexOf(each) < files.indexOf(file), file.proto.name);
  }
});
