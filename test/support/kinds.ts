import { AllocationKind, type AllocationParts } from '../../src/gateway/trading/allocations/kind.ts';
import { ApplicationKind, type ApplicationParts } from '../../src/gateway/trading/applications/kind.ts';
import { OrderKind, type OrderParts } from '../../src/gateway/trading/orders/kind.ts';

/** Kinds for tests of what decides without asking anybody: they have no broker and no database. */
export const orderKind = new OrderKind({} as OrderParts);
export const applicationKind = new ApplicationKind({} as ApplicationParts);
export const allocationKind = new AllocationKind({} as AllocationParts);
