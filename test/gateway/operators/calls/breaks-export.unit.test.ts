import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { AdminCall } from '../../../../src/gateway/operators/calls/call.ts';
import { exportCalls } from '../../../../src/gateway/operators/calls/diagnostics/reconciliation.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { ExportReconciliationBreaksRequestSchema } from '../../../../src/gen/marina/admin/v1/reconciliation_pb.ts';

describe('an export of breaks', () => {
  it('ends when its time is over, before it reads on, and lets another one begin', async () => {
    const { exportReconciliationBreaks } = exportCalls({} as Database, 0);
    const asked = create(ExportReconciliationBreaksRequestSchema);
    for (let count = 0; count < 2; count += 1) {
      const parts = exportReconciliationBreaks(asked, {} as AdminCall, new AbortController().signal);
      assert.match(String((await parts.next()).value?.csv), /^id,day,kind/);
      await assert.rejects(parts.next(), { status: status.DEADLINE_EXCEEDED, message: /takes too long/ });
    }
  });
});
