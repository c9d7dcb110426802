import { randomUUID } from 'node:crypto';
import type { RestAnswer, TestGateway, TestPartner } from './gateway.ts';

/** A body of POST /v1/applications that nothing is wrong with: every required field. */
export const goodApplication = {
  first_name: 'Adaeze',
  last_name: 'Okafor',
  date_of_birth: '1990-12-31',
  gender: 'female',
  email: 'adaeze@example.com',
  phone: '+2348030000000',
  address: '1 Marina',
  city: 'Lagos',
  state: 'LAGOS',
  state_of_origin: 'AKWA-IBOM',
  lga_of_origin: 'AKWA-IBOM-UYO',
  bvn: '22222222222',
  next_of_kin_name: 'Emeka Okafor',
  next_of_kin_phone: '+2348030000001',
  next_of_kin_relationship: 'brother',
};

/** Applies for an account with a fresh key unless one is given. */
export function apply(
  gateway: Pick<TestGateway, 'rest'>,
  partner: Pick<TestPartner, 'key'>,
  fields: Record<string, unknown> = {},
  idempotencyKey: string = randomUUID(),
): Promise<RestAnswer> {
  return gateway.rest('POST', '/v1/applications', {
    key: partner.key,
    idempotencyKey,
    body: { ...goodApplication, ...fields },
  });
}
