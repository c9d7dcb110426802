import { create, type DescMethod, type MessageInitShape, type MessageShape, toJson } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import type { UnaryCallOptions } from '../kit/grpc-client.ts';

/** One call and how it ended. */
export interface RecordedCall {
  /** As `Orders.SubmitOrder`. */
  readonly call: string;
  /** In the form of protobuf's JSON. */
  readonly request: unknown;
  /** Absent: the call ended with a status. */
  readonly answer?: unknown;
  /** As `ALREADY_EXISTS`; `OK` with an answer. */
  readonly status: string;
  readonly details?: string;
  readonly tookMs: number;
}

/** The outcome of one call: an answer, or a status other than OK. */
export interface CallOutcome<Answer> {
  readonly answer: Answer | undefined;
  readonly code: status;
  readonly exchange: RecordedCall;
  /** Real time by our clock, in milliseconds. */
  readonly sentAt: number;
  readonly endedAt: number;
}

type UnaryCall<M extends DescMethod> = (
  request: MessageInitShape<M['input']>,
  options: UnaryCallOptions,
) => Promise<MessageShape<M['output']>>;

/** Makes a call and keeps request and answer. Never throws. */
export async function exchange<M extends DescMethod>(
  method: M,
  call: UnaryCall<M>,
  request: MessageInitShape<M['input']>,
  options: UnaryCallOptions,
): Promise<CallOutcome<MessageShape<M['output']>>> {
  const sentAt = Date.now();
  const startedAt = performance.now();
  const sent = () => ({
    call: `${method.parent.name}.${method.name}`,
    request: shown(method.input, create(method.input, request)),
    tookMs: Math.round(performance.now() - startedAt),
  });
  try {
    const answer = await call(request, options);
    const exchange = { ...sent(), answer: shown(method.output, answer), status: 'OK' };
    return { answer, code: status.OK, exchange, sentAt, endedAt: Date.now() };
  } catch (error) {
    const { code = status.UNKNOWN, details = (error as Error).message } = error as Partial<ServiceError>;
    const exchange = { ...sent(), status: status[code] ?? String(code), details };
    return { answer: undefined, code, exchange, sentAt, endedAt: Date.now() };
  }
}

/** A message for people. Long bytes and texts are cut. */
export function shown(schema: DescMethod['input'], message: MessageShape<DescMethod['input']>): unknown {
  return shorten(toJson(schema, message, { alwaysEmitImplicit: false }));
}

const longestText = 120;
const longestList = 12;

function shorten(value: unknown): unknown {
  if (typeof value === 'string' && value.length > longestText) {
    return `${value.slice(0, longestText)}… (${value.length} characters)`;
  }
  if (Array.isArray(value)) {
    const first = value.slice(0, longestList).map(shorten);
    return value.length > longestList ? [...first, `… (${value.length} in all)`] : first;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shorten(each)]));
}
