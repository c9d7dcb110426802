import { status } from '@grpc/grpc-js';
import { Statements } from '../../../gen/marina/broker/v1/statements_pb.ts';
import { codeOf } from '../../../kit/grpc-client.ts';
import { ApiError } from '../../edge/errors.ts';
import type { BrokerStatements } from './broker.ts';
import { BrokerConnection, type BrokerOptions, type Closable, evidenceOf } from './grpc-connection.ts';
import { keysOf, StatementError, statementPageSize, timeOf, wrongIn } from './statements.ts';

/** Statements over gRPC, with a connection of their own, so that a slow page holds nothing up. */
export function grpcStatements(options: BrokerOptions): BrokerStatements & Closable {
  const connection = new BrokerConnection(Statements, 'broker', options);
  return {
    page: async (place, timeoutMs) => {
      const { day, section, cursor } = place;
      const answer = await connection
        .call('getStatement', { day, section, cursor, limit: statementPageSize }, { timeoutMs })
        .catch((error: unknown) => {
          throw problemOf(error);
        });
      const wrong = wrongIn(answer, place);
      if (wrong !== undefined) throw new StatementError('nonsense', `the statement makes no sense: ${wrong}`);
      return {
        answer,
        fromMs: timeOf(answer.from),
        toMs: timeOf(answer.to),
        lastKey: keysOf(answer, section).at(-1) ?? place.afterKey,
      };
    },
    close: () => connection.close(),
  };
}

function problemOf(error: unknown): StatementError {
  if (error instanceof ApiError) {
    return new StatementError('nonsense', 'the statement makes no sense: a text is not printable', { cause: error });
  }
  const code = codeOf(error);
  if (code === status.UNIMPLEMENTED) {
    return new StatementError('not_offered', 'the broker gives no statements', { cause: error });
  }
  if (code === status.NOT_FOUND) {
    return new StatementError('no_statement', 'the broker has no statement of the day', { cause: error });
  }
  return new StatementError('unavailable', `the broker did not answer: ${evidenceOf(error)}`, { cause: error });
}
