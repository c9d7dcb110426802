import type { Act } from './habit.ts';

/** The next whole second in Lagos, as the adapter's settings take it: no order of the day before is younger. */
export function nextSecondInLagos(): string {
  return new Date(Date.now() + 3_600_000 + 999).toISOString().slice(11, 19);
}

/** The exchange's night, and the adapter's: the session's day begins now, so that numbers begin at 1 on both sides. */
export async function nextDay({ chain, acceptor }: Act): Promise<void> {
  await chain.stopAdapter();
  acceptor.cut();
  acceptor.endOfDay();
  acceptor.isOpen = true;
  await chain.startAdapter({ MARINA_FIX_SESSION_START: nextSecondInLagos() });
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

/** Waits until the order was taken, and trades these parts of it while the line is down. */
export function tradeWhileAway(...quantities: readonly number[]): (act: Act) => Promise<void> {
  return async (act) => {
    await act.sees('pending');
    const desk = await act.desk();
    await whileAway(act, () => {
      for (const quantity of quantities) desk.trade(quantity);
    });
  };
}

/** Waits until the order was taken, and trades it whole while the line is down. */
export const fillWhileAway = tradeWhileAway(100);
