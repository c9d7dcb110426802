/** How many replicas there can be: more would each have nearly nothing, so a gateway that hears of more is lied to. */
export const maxReplicas = 256;

const nameForm = /^[A-Za-z0-9-]{1,64}$/;
const heartbeatForm = /^([A-Za-z0-9-]{1,64}) (\d{1,15}(?:\.\d{1,6})?)$/;
const pauseForm = /^([A-Za-z0-9-]{1,64}) (\d{1,7})$/;

/** Whether a text can be a replica's name. */
export function isReplicaName(text: string): boolean {
  return nameForm.test(text);
}

/** Parses the heartbeat of a replica: its name and when it was sent, by the monotonic clock of its sender. */
export function parseHeartbeat(text: string): { readonly replica: string; readonly sentAt: number } | undefined {
  const [, replica, sentAt] = heartbeatForm.exec(text) ?? [];
  return replica === undefined ? undefined : { replica, sentAt: Number(sentAt) };
}

/** Parses a replica's word that all keep to their shares: its name and for how many milliseconds. */
export function parsePause(text: string): { readonly replica: string; readonly pauseMs: number } | undefined {
  const [, replica, pauseMs] = pauseForm.exec(text) ?? [];
  return replica === undefined ? undefined : { replica, pauseMs: Number(pauseMs) };
}

/** The other replicas, by their heartbeats. */
export class Peers {
  /** When each other replica's last heartbeat came. */
  readonly #heardAt = new Map<string, number>();

  get count(): number {
    return this.#heardAt.size;
  }

  /** Notes a heartbeat. False if there would be more replicas than can be. */
  heard(replica: string, now: number): boolean {
    if (!this.#heardAt.has(replica) && this.#heardAt.size >= maxReplicas - 1) return false;
    this.#heardAt.set(replica, now);
    return true;
  }

  /** When its last heartbeat came; -Infinity: never. */
  heardAt(replica: string): number {
    return this.#heardAt.get(replica) ?? Number.NEGATIVE_INFINITY;
  }

  remove(replica: string): void {
    this.#heardAt.delete(replica);
  }

  /** Removes those without a heartbeat for so long. */
  removeSilent(silentMs: number, now: number): void {
    for (const [replica, at] of this.#heardAt) if (now - at >= silentMs) this.#heardAt.delete(replica);
  }

  /** All count as heard now. */
  startListening(now: number): void {
    for (const replica of this.#heardAt.keys()) this.#heardAt.set(replica, now);
  }
}
