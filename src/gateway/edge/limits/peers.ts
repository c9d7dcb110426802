/** How many replicas there can be: more would each have nearly nothing, so a gateway that hears of more is lied to. */
export const maxReplicas = 256;

/** A replica's heartbeat: its name and when it was sent, by the monotonic clock of its sender. */
export const heartbeatForm = /^([A-Za-z0-9-]{1,64}) (\d{1,15}(?:\.\d{1,6})?)$/;
/** A replica's word that all keep to their shares: its name and for how many milliseconds. */
export const pauseForm = /^([A-Za-z0-9-]{1,64}) (\d{1,7})$/;

/** Whether a text can be a replica's name. */
export function isReplicaName(text: string): boolean {
  return /^[A-Za-z0-9-]{1,64}$/.test(text);
}
