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
import { objectHistory, objectSteps } from '../submission/table.ts';
import type { WithdrawalKind } from './kind.ts';
import { shownWithdrawal, toStepMessage, toWithdrawalMessage } from './table.ts';

/** The operations on withdrawals. */
export function withdrawalHandlers(parts: SubmissionHandlerParts & { readonly kind: WithdrawalKind }) {
  const { database, cursors } = parts;
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
      const { partnerId } = call.caller;
      const { id = '', limit = 25, cursor } = request;
      const issuedFor = ['withdrawal-history', partnerId, id];
      const after = cursor === undefined ? 0 : Number(cursors.read(issuedFor, cursor));
      await of.find(id, call);
      const rows = await database.read(objectHistory.page(partnerId, id, after, limit + 1));
      const page = cursors.page(issuedFor, rows.map(objectSteps.all.read), limit, ({ sequence }) => String(sequence));
      return create(GetWithdrawalHistoryResponseSchema, { ...page, data: page.data.map(toStepMessage) });
    },
  };
}
