import { seededRandom } from '../random.ts';

/**
 * The parts of a price's walk, by the trading days between turns. Each is smooth noise that reaches the square root of
 * its length. So a price follows from seed, symbol and time alone.
 */
const partsInDays = [64, 16, 4, 1, ...Array.from({ length: 7 }, (_, index) => 4 ** -(index + 1))];
/** The reach of the one-day part, up or down. All parts together cannot move a price by 8 % within a day. */
const dailyReach = 0.012;
/** Factors of the reach, from calm to lively stocks. Even the liveliest keep within the band. */
const liveliness = { least: 0.5, most: 1.15 };

/** A price at a time, in trading days, divided by the stock's listed price. */
export function walkFactor(seed: number, symbol: string, time: number): number {
  const random = seededRandom(seed, 'walk', symbol);
  const own = random.whole(-0x80000000, 0x7fffffff);
  const lively = liveliness.least + random.next() * (liveliness.most - liveliness.least);
  let away = 0;
  for (const [part, days] of partsInDays.entries()) {
    const at = time / days;
    const turn = Math.floor(at);
    const passed = at - turn;
    const from = turnOf(own, part, turn);
    away += (from + (turnOf(own, part, turn + 1) - from) * passed * passed * (3 - 2 * passed)) * Math.sqrt(days);
  }
  return Math.exp(away * lively * dailyReach);
}

/** The value of a part at a turn: a pseudo-random number from -1 to 1. */
function turnOf(own: number, part: number, turn: number): number {
  let mixed = Math.imul(own ^ Math.imul(part + 1, 0x9e3779b1), 0x85ebca6b) ^ Math.imul(turn, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2_147_483_648 - 1;
}
