import { type Client, type ServerUnaryCall, type ServerWritableStream, type ServiceError, status } from '@grpc/grpc-js';
import type { TypedService } from '../../kit/grpc-service.ts';

const asIs = (bytes: Buffer) => bytes;
const usualTimeMs = 10_000;

type Definition = Record<string, object>;
type Handlers = Record<string, (...args: never[]) => void>;

/**
 * Passes every call of a service to the back office, byte for byte: message, metadata, deadline, cancellation, and the status
 * of its answer.
 */
export function passThrough(
  service: TypedService,
  backOffice: () => Client,
): { definition: Definition; handlers: Handlers } {
  const definition: Definition = {};
  const handlers: Handlers = {};
  for (const method of service.methods) {
    const path = `/${service.typeName}/${method.name}`;
    const responseStream = method.methodKind === 'server_streaming';
    definition[method.localName] = {
      path,
      requestStream: false,
      responseStream,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
    handlers[method.localName] = responseStream ? passStream(path, backOffice) : passCall(path, backOffice);
  }
  return { definition, handlers };
}

function passCall(path: string, backOffice: () => Client) {
  return (
    call: ServerUnaryCall<Buffer, Buffer>,
    callback: (error: Partial<ServiceError> | null, answer?: Buffer) => void,
  ) => {
    const given = call.getDeadline();
    const deadline = Number.isFinite(Number(given)) ? given : Date.now() + usualTimeMs;
    const onward = backOffice().makeUnaryRequest(
      path,
      asIs,
      asIs,
      call.request,
      call.metadata,
      { deadline },
      (error, answer) => {
        if (error) callback({ code: error.code, details: error.details });
        else callback(null, answer);
      },
    );
    call.on('cancelled', () => onward.cancel());
  };
}

function passStream(path: string, backOffice: () => Client) {
  return (call: ServerWritableStream<Buffer, Buffer>) => {
    const deadline = call.getDeadline();
    const onward = backOffice().makeServerStreamRequest(path, asIs, asIs, call.request, call.metadata, {
      ...(Number.isFinite(Number(deadline)) ? { deadline } : {}),
    });
    call.on('cancelled', () => onward.cancel());
    call.on('error', () => onward.cancel());
    onward.on('error', (error: ServiceError) => {
      if (!call.cancelled && !call.destroyed) {
        call.emit('error', { code: error.code ?? status.UNAVAILABLE, details: error.details });
      }
    });
    onward.on('data', (bytes: Buffer) => {
      if (call.write(bytes)) return;
      onward.pause();
      call.once('drain', () => onward.resume());
    });
    onward.on('end', () => call.end());
  };
}
