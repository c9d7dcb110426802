import { create } from '@bufbuild/protobuf';
import {
  CreateWithdrawalRequestSchema,
  type GetWithdrawalHistoryRequest,
  GetWithdrawalHistoryResponseSchema,
  ListWithdrawalsRequestSchema,
  ListWithdrawalsResponseSchema,
} from '../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import type { Call } from '../../edge/call.ts';
import { type SubmissionHandlerParts, submissionHandlers } from '../submission/handlers.ts';
import { objectSteps } from '../submission/table.ts';
import type { WithdrawalKind } from './kind.ts';
import { shownWithdrawal, toStepMessage, toWithdrawalMessage } from './table.ts';

/** The operations on withdrawals. */
export function withdrawalHandlers(parts: SubmissionHandlerParts & { readonly kind: WithdrawalKind }) {
  const of = submissionHandlers(
    parts,
    parts.kind,
    [CreateWithdrawalRequestSchema, ListWithdrawalsRequestSchema, ListWithdrawalsResponseSchema],
    shownWithdrawal,
    toWithdrawalMessage,
  );
  return {
    createWithdrawal: of.create,
    listWithdrawals: of.list,
    getWithdrawal: of.get,

    async getWithdrawalHistory(request: GetWithdrawalHistoryRequest, call: Call) {
      const page = await of.history(request, call, objectSteps.all);
      return create(GetWithdrawalHistoryResponseSchema, { ...page, data: page.data.map(toStepMessage) });
    },
  };
}
