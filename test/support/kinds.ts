import { AllocationKind, type AllocationParts } from '../../src/gateway/allocations/kind.ts';
import { ApplicationKind, type ApplicationParts } from '../../src/gateway/applications/kind.ts';
import { OrderKind, type OrderParts } from '../../src/gateway/orders/kind.ts';

/** Kinds for tests of what decides without asking anybody: they have no broker and no database. */
export const orderKind = new OrderKind({} as OrderParts);
export const applicationKind = new ApplicationKind({} as ApplicationParts);
export const allocationKind = new AllocationKind({} as AllocationParts);
