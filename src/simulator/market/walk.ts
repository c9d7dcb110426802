import { seededRandom } from '../random.ts';

/**
 * The parts a price's walk is made of, by how many trading days each takes from one turn to the next. Each is smooth
 * noise, and the square root of its length says how far it goes, as of a random walk. So the price of any moment is
 * known from seed, symbol and time alone: nothing has to run while nobody looks.
 */
const partsInDays = [64, 16, 4, 1, ...Array.from({ length: 7 }, (_, index) => 4 ** -(index + 1))];
/** How far the part of one day goes, up or down. All parts together cannot move a price by 8 % within a day. */
const dailyReach = 0.012;
/** How lively stocks are: some go half as far, the liveliest a little further, and even these keep within the band. */
const liveliness = { least: 0.5, most: 1.15 };

/** By how much a price differs at a time, in trading days, from the one its stock is listed with: a factor around 1. */
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

/** Where a part is at its turns: a number from -1 to 1 that looks like chance. */
function turnOf(own: number, part: number, turn: number): number {
  let mixed = Math.imul(own ^ Math.imul(part + 1, 0x9e3779b1), 0x85ebca6b) ^ Math.imul(turn, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2_147_483_648 - 1;
}
