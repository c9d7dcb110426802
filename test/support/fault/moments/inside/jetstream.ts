import { endAfter, type Watch } from './watch.ts';

type Publish = (this: object, subject: string, ...rest: unknown[]) => Promise<unknown>;

/** The parts of nats.js that are wrapped. */
export interface JetStream {
  readonly JetStreamClientImpl: { readonly prototype: object };
  readonly JsMsgImpl: { readonly prototype: object };
}

/** Watches what is published to JetStream, and the acknowledgements of events. */
export function watchJetStream({ JetStreamClientImpl, JsMsgImpl }: JetStream, watch: Watch): void {
  const client = JetStreamClientImpl.prototype as { publish: Publish };
  const publish = client.publish;
  client.publish = async function (subject, ...rest) {
    const fate = watch.meet('publish', labelOf(subject));
    if (fate === 'refused') throw Object.assign(new Error('refused by a test'), { code: '503' });
    const stored = await publish.call(this, subject, ...rest);
    endAfter(fate);
    if (fate === 'unknown') throw Object.assign(new Error('the answer was lost by a test'), { code: 'TIMEOUT' });
    return stored;
  };
  const message = JsMsgImpl.prototype as { ack(): void };
  const ack = message.ack;
  message.ack = function () {
    const fate = watch.meet('ack', 'events');
    // It has no answer: one that is lost is delivered again.
    if (fate === 'refused' || fate === 'unknown') return;
    ack.call(this);
    setImmediate(endAfter, fate);
  };
}

/** An event's type, or the bucket of a counter: without a prefix and a partner, which differ from run to run. */
function labelOf(subject: string): string {
  if (subject.startsWith('$KV.')) return 'counters';
  return subject.split('.').slice(2).join('.');
}
