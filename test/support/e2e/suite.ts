import { after, before } from 'node:test';
import { startGateway, type TestGateway, type TestPartner } from '../gateway.ts';
import { Protocols } from './protocols.ts';

/** The objects that the tests of one file share; they are there once the tests run. */
export interface Suite {
  readonly gateway: TestGateway;
  readonly protocols: Protocols;
  readonly partner: TestPartner;
}

/** Starts a gateway for the tests of a `describe`, with a partner of theirs, and stops it after them. */
export function useGateway(
  variables?: Record<string, string>,
  options?: Parameters<TestGateway['newPartner']>[0],
): Suite {
  let suite: Suite | undefined;
  before(async () => {
    const gateway = await startGateway(variables);
    suite = { gateway, protocols: new Protocols(gateway), partner: await gateway.newPartner(options) };
  });
  after(async () => {
    suite?.protocols.close();
    await suite?.gateway.stop();
  });
  const part = <Name extends keyof Suite>(name: Name): Suite[Name] => {
    if (suite === undefined) throw new Error('the gateway runs only while tests do');
    return suite[name];
  };
  return {
    get gateway() {
      return part('gateway');
    },
    get protocols() {
      return part('protocols');
    },
    get partner() {
      return part('partner');
    },
  };
}
