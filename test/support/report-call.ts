import { EventEmitter } from 'node:events';
import type { status } from '@grpc/grpc-js';

/** A gateway's call for a stream of reports, as its server sees it. The gateway reads as fast as the test says. */
export class ReportCall<Message> extends EventEmitter {
  readonly messages: Message[] = [];
  /** The statuses with which it ended in an error. */
  readonly errors: status[] = [];
  cancelled = false;
  destroyed = false;
  isSlow = false;
  readonly request: { readonly afterNumber: bigint };

  constructor(afterNumber = 0n) {
    super();
    this.request = { afterNumber };
    this.on('error', ({ code }: { code: status }) => this.errors.push(code));
  }

  write(message: Message): boolean {
    this.messages.push(message);
    return !this.isSlow;
  }

  cancel(): void {
    this.cancelled = true;
    this.emit('cancelled');
  }
}
