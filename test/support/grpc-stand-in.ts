import { type Metadata, Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';

/** A call that a stand-in answers: what it was asked, and with which token. */
export interface StandInCall {
  readonly name: string;
  readonly request: Record<string, unknown>;
  readonly token: string | undefined;
}

/** A method of a stand-in: it returns the answer, or throws an error with the `code` of a status. */
export function answering<Request, Answer>(
  name: string,
  calls: StandInCall[],
  reply: (request: Request) => Answer,
): (call: ServerUnaryCall<Request, Answer>, send: sendUnaryData<Answer>) => void {
  return ({ request, metadata }: { request: Request; metadata: Metadata }, send) => {
    const token = metadata.get('authorization')[0];
    calls.push({
      name,
      request: request as Record<string, unknown>,
      token: token === undefined ? token : String(token),
    });
    try {
      send(null, reply(request));
    } catch (error) {
      send(error as { code: number; details: string });
    }
  };
}

/** Starts a server of gRPC with services, on a free port. */
export async function startStandIn(
  services: readonly (readonly [Parameters<Server['addService']>[0], Parameters<Server['addService']>[1]])[],
): Promise<{ readonly port: number; readonly address: string; stop(): void }> {
  const server = new Server();
  for (const [definition, methods] of services) server.addService(definition, methods);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, address: `127.0.0.1:${port}`, stop: () => server.forceShutdown() };
}
