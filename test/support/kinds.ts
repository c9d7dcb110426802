import { AllocationKind } from '../../src/gateway/trading/allocations/kind.ts';
import { ApplicationKind } from '../../src/gateway/trading/applications/kind.ts';
import { OrderKind } from '../../src/gateway/trading/orders/kind.ts';
import { WithdrawalKind } from '../../src/gateway/trading/withdrawals/kind.ts';

const nothing = {} as never;

/** Kinds for tests of what decides without asking anybody: they have no broker and no database. */
export const orderKind = new OrderKind(nothing, nothing, nothing);
export const applicationKind = new ApplicationKind(nothing, nothing, nothing, nothing);
export const withdrawalKind = new WithdrawalKind(nothing, nothing, nothing, nothing, nothing);
export const allocationKind = new AllocationKind(nothing, nothing, nothing, nothing);
