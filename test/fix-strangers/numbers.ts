import type { Act } from './habit.ts';

/** A time of day in Lagos that was a moment ago, as the adapter's settings take it. */
export function justNowInLagos(): string {
  return new Date(Date.now() + 3_600_000 - 1_000).toISOString().slice(11, 19);
}

/** The exchange's night, and the adapter's: the session's day began a moment ago, so that numbers begin at 1 on both sides. */
export async function nextDay({ chain, acceptor }: Act): Promise<void> {
  await chain.stopAdapter();
  acceptor.cut();
  acceptor.endOfDay();
  acceptor.isOpen = true;
  await chain.startAdapter({ MARINA_FIX_SESSION_START: justNowInLagos() });
  await chain.up();
}

/** The line breaks, something happens meanwhile, and the adapter connects again. */
export async function whileAway(act: Act, happens: () => void): Promise<void> {
  const { acceptor, chain } = act;
  acceptor.isOpen = false;
  acceptor.cut();
  happens();
  acceptor.isOpen = true;
  await chain.up();
}

/** Waits until the order was taken, and trades it whole while the line is down. */
export async function fillWhileAway(act: Act): Promise<void> {
  await act.sees('pending');
  const desk = await act.desk();
  await whileAway(act, () => void desk.trade(100));
}
