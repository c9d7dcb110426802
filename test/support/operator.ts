import type { JsonObject } from '@bufbuild/protobuf';
import type { ServiceError } from '@grpc/grpc-js';
import { type GatewaySurroundings, operatorToken, startGateway, type TestGateway } from './gateway.ts';
import { ReflectedClient } from './reflected.ts';
import type { WorldPart } from './world.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
export type Found = any;

/** An operator of a gateway, who calls by what the gateway says of itself, as with grpcurl. */
export class TestOperator {
  private constructor(
    readonly gateway: TestGateway,
    readonly client: ReflectedClient,
  ) {}

  static async start(variables?: Record<string, string>, surroundings?: GatewaySurroundings): Promise<TestOperator> {
    const gateway = await startGateway(variables, surroundings);
    return new TestOperator(gateway, await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`));
  }

  /** `left`: what the test leaves in disorder on purpose (`checkWorld`). */
  async stop(left?: readonly WorldPart[]): Promise<void> {
    this.client.close();
    await this.gateway.stop(left);
  }

  call(name: string, request: JsonObject = {}): Promise<Found> {
    return this.client.call(`marina.admin.v1.${name}`, request, operatorToken);
  }

  /** Makes a call that must be refused, and answers with what it is refused with. */
  async refused(name: string, request: JsonObject): Promise<ServiceError> {
    const answer = await this.call(name, request).catch((error: unknown) => ({ error }));
    if (!('error' in answer)) throw new Error(`${name} was not refused`);
    return answer.error as ServiceError;
  }
}
