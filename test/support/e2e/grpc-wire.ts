import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { patient } from '../patience.ts';

/** How a gRPC call ended, as it came. */
export interface GrpcAnswer {
  readonly code: status;
  readonly details: string;
  /** The answer's message; undefined when the call failed. */
  readonly bytes: Buffer | undefined;
  /** Metadata, whether it came before the message or with the status. */
  readonly metadata: Metadata;
}

/** Calls of one gRPC port whose messages are bytes, so that they can be anything. */
export class GrpcWire {
  readonly #client: Client;

  constructor(port: number) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.enable_retries': 0 });
  }

  call(path: string, bytes: Uint8Array, metadata: Metadata): Promise<GrpcAnswer> {
    return new Promise((resolve) => {
      const received = new Metadata();
      const done = (error: ServiceError | null, message?: Buffer) => {
        if (error !== null) received.merge(error.metadata);
        const { code, details } = error ?? { code: status.OK, details: '' };
        resolve({ code, details, bytes: message, metadata: received });
      };
      const deadline = Date.now() + patient(20_000);
      const call = this.#client.makeUnaryRequest(path, same, same, Buffer.from(bytes), metadata, { deadline }, done);
      call.on('metadata', (initial: Metadata) => received.merge(initial));
    });
  }

  close(): void {
    this.#client.close();
  }
}

function same(bytes: Buffer): Buffer {
  return bytes;
}
