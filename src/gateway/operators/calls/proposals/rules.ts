import { isSamePerson } from '../../../../kit/operator-tokens.ts';

/** How long a proposal waits for a second operator: over a long weekend, and not so long that its evidence is stale. */
export const proposalLifeMs = 7 * 86_400_000;

/** Whether an amount needs a second operator. `aboveKobo`: the greatest that needs none; undefined: none needs one. */
export function isAbove(amountKobo: bigint, aboveKobo: bigint | undefined): boolean {
  return aboveKobo !== undefined && amountKobo > aboveKobo;
}

/** What decides about a proposal. */
export interface ProposalFacts {
  readonly state: string;
  readonly proposedBy: string;
  readonly expiresAt: number;
}

/** A proposal's state. `now` is business time. */
export function stateOf({ state, expiresAt }: Pick<ProposalFacts, 'state' | 'expiresAt'>, now: number): string {
  return state === 'open' && expiresAt <= now ? 'expired' : state;
}

/** Why an operator may not approve a proposal; undefined: he may. */
type Forbidden = 'not-open' | 'own';

/** Whether an operator may approve a proposal. The names of tokens that differ only in case are one person's. */
export function forbidsApproval(
  proposal: ProposalFacts,
  operator: string,
  mayApproveOwn: boolean,
  now: number,
): Forbidden | undefined {
  if (stateOf(proposal, now) !== 'open') return 'not-open';
  const isOwn = isSamePerson(proposal.proposedBy, operator);
  return isOwn && !mayApproveOwn ? 'own' : undefined;
}

/** The fields of an object that a proposal is about, by name. */
export type Seen = Readonly<Record<string, string | null>>;

/** What changed of an object since it was proposed, in words; empty: nothing. */
export function changesSince(seen: Seen, now: Seen): string {
  const names = [...new Set([...Object.keys(seen), ...Object.keys(now)])];
  const shown = (value: string | null | undefined) => value ?? 'none';
  return names
    .filter((name) => seen[name] !== now[name])
    .map((name) => `\`${name}\` was ${shown(seen[name])} and is ${shown(now[name])}`)
    .join(', ');
}
