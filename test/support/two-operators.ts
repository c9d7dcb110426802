import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '@bufbuild/protobuf';
import type { ServiceError } from '@grpc/grpc-js';
import type { Found } from './operator.ts';
import { patient } from './patience.ts';
import { ReflectedClient } from './reflected.ts';

const tokens = { ada: 'ada-operator-token-0123456789ab', bola: 'bola-operator-token-0123456789ab' } as const;
/** A second token of the first operator, under her name in capitals. */
const otherTokens = { ...tokens, ADA: 'ada-second-token-0123456789abcd' } as const;
export type OperatorName = keyof typeof otherTokens;

/** The setting with which a gateway knows them, besides the operator of all tests. */
export const operatorTokens = (first: string): string =>
  [first, ...Object.entries(otherTokens).map(([name, token]) => `${name}:${token}`)].join(',');

/** How it is refused to settle an object as never taken while the broker may still take it, and how long that is at most. */
const mayStillBeTaken = /^it may still be taken until /;
const maxWaitMs = 15_000;

/** Two operators of a gateway, who call by what the gateway says of itself. */
export class TwoOperators {
  protected constructor(readonly client: ReflectedClient) {}

  static async connect(adminPort: number): Promise<TwoOperators> {
    return new TwoOperators(await ReflectedClient.connect(`127.0.0.1:${adminPort}`));
  }

  /** The same operators at another port of the same version. */
  at(adminPort: number): TwoOperators {
    return new TwoOperators(this.client.at(`127.0.0.1:${adminPort}`));
  }

  close(): void {
    this.client.close();
  }

  as(name: OperatorName, call: string, request: JsonObject = {}): Promise<Found> {
    return this.client.call(`marina.admin.v1.${call}`, request, otherTokens[name]);
  }

  /** Makes a call that must be refused, and answers with what it is refused with. */
  async refused(name: OperatorName, call: string, request: JsonObject): Promise<ServiceError> {
    const answer = await this.as(name, call, request).catch((error: unknown) => ({ error }));
    if (!('error' in answer)) throw new Error(`${call} was not refused`);
    return answer.error as ServiceError;
  }

  /** Proposes an outcome as the first operator once it can be proposed, and answers with the proposal's id. */
  async propose(objectId: string, outcome: JsonObject, more: JsonObject = {}): Promise<string> {
    const request = { object_id: objectId, outcome, evidence, reference: 'desk 4711', ...more };
    for (const end = performance.now() + patient(maxWaitMs); ; await delay(100)) {
      try {
        const { proposal } = await this.as('ada', 'Settlements.ProposeSettlement', request);
        return proposal.id as string;
      } catch (error) {
        if (performance.now() > end || !mayStillBeTaken.test((error as ServiceError).details)) throw error;
      }
    }
  }

  /** The same for an outcome that must be refused. */
  refusedProposal(objectId: string, outcome: JsonObject): Promise<ServiceError> {
    const request = { object_id: objectId, outcome, evidence, reference: 'desk 4711' };
    return this.refused('ada', 'Settlements.ProposeSettlement', request);
  }

  approve(id: string): Promise<Found> {
    return this.as('bola', 'Proposals.ApproveProposal', { id, reason: 'compared with the contract note' });
  }

  /** Proposes an outcome, and has the other operator approve it. */
  async settle(objectId: string, outcome: JsonObject): Promise<Found> {
    return this.approve(await this.propose(objectId, outcome));
  }
}

/** An operator's evidence. Nobody but operators may see it. */
export const evidence = 'Zainab of the desk said so on the phone at 11:40';
