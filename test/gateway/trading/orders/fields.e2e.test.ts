import { describe, it } from 'node:test';
import { type Call, goodBody, type Members, type OperationName } from '../../../support/e2e/calls.ts';
import { fieldMistakes } from '../../../support/e2e/field-mistakes.ts';
import { protocolsOf } from '../../../support/e2e/protocols.ts';
import { useGateway } from '../../../support/e2e/suite.ts';
import { assertUntouched } from '../../../support/e2e/traces.ts';

for (const operation of ['createOrder', 'estimateOrder'] satisfies OperationName[]) {
  describe(`the fields of ${operation}`, () => {
    const suite = useGateway();
    const idempotencyKey = 'the same key for all of them';
    const callWith = (members: Members, account = 'ABC'): Call => ({
      operation,
      idempotencyKey: [idempotencyKey],
      body: { ...goodBody(account), ...members },
    });

    for (const { name, body, code = 'invalid_request', param } of fieldMistakes) {
      for (const protocol of protocolsOf(callWith(body))) {
        it(`${protocol}: ${name} is answered ${code} of ${param}`, async () => {
          const call = { ...callWith(body, suite.partner.account), key: suite.partner.key };
          await suite.protocols.refuses(protocol, call, { code, param });
        });
      }
    }

    it('nothing was stored or sent, and a good order takes the key they all had', () =>
      assertUntouched(suite.gateway, suite.partner, idempotencyKey));
  });
}
