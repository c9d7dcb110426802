import { type OperationRules, readRules } from '../gateway/edge/operations.ts';
import { Accounts } from '../gen/marina/gateway/v1/accounts_pb.ts';
import { Allocations } from '../gen/marina/gateway/v1/allocations_pb.ts';
import { Applications } from '../gen/marina/gateway/v1/applications_pb.ts';
import { Events } from '../gen/marina/gateway/v1/events_pb.ts';
import { Keys } from '../gen/marina/gateway/v1/keys_pb.ts';
import { Limits } from '../gen/marina/gateway/v1/limits_pb.ts';
import { Orders } from '../gen/marina/gateway/v1/orders_pb.ts';
import { Reference } from '../gen/marina/gateway/v1/reference_pb.ts';
import { Sandbox } from '../gen/marina/gateway/v1/sandbox_pb.ts';
import { Wallet } from '../gen/marina/gateway/v1/wallet_pb.ts';
import { Withdrawals } from '../gen/marina/gateway/v1/withdrawals_pb.ts';

/** Every operation of a sandbox's gateway, as its protos describe it, without a gateway that serves it. */
export const gatewayOperations: readonly OperationRules[] = [
  Orders,
  Allocations,
  Withdrawals,
  Wallet,
  Applications,
  Accounts,
  Reference,
  Events,
  Limits,
  Keys,
  Sandbox,
].flatMap((service) => service.methods.map(readRules));
