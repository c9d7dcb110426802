import type { EventEmitter } from 'node:events';

/** Takes the listeners of an event away, and returns what calls them: to decide first which events they see. */
export function takeOver(emitter: EventEmitter, event: string): (...args: unknown[]) => void {
  const listeners = emitter.listeners(event) as ((...args: unknown[]) => void)[];
  if (listeners.length === 0) throw new Error(`nobody listens for ${event}`);
  emitter.removeAllListeners(event);
  return (...args) => {
    for (const listener of listeners) listener.apply(emitter, args);
  };
}
