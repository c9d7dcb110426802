import type { Nats } from './nats.ts';

/**
 * What the processes of a gateway notify each other of, over NATS. A notification can be lost, so each only brings sooner
 * what is found out without it.
 */
export class Notifications {
  constructor(
    private readonly nats: Nats,
    private readonly prefix: string,
  ) {}

  /** Calls `receive` with each notification of a name that another process, or this one, publishes. */
  subscribe(name: string, receive: (text: string) => void): void {
    this.nats.subscribe(this.#subject(name), receive);
  }

  /** Notifies all processes, if NATS is there. */
  publish(name: string, text = ''): void {
    this.nats.publish(this.#subject(name), text);
  }

  /** Versions before this one listen to the same subjects. */
  #subject(name: string): string {
    return `${this.prefix}say.${name}`;
  }
}
