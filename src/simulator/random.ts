/** Random numbers that are the same for the same seed. */
export interface Random {
  /** From 0 (included) to 1 (excluded). */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  whole(min: number, max: number): number;
}

/** A random source for one purpose. Each order has its own, so that it does not depend on the orders before. */
export function seededRandom(...seed: readonly (string | number)[]): Random {
  let state = hash(seed.join('\u0000'));
  // mulberry32: tiny, fast, and even enough for a simulated market.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return { next, whole: (min, max) => min + Math.floor(next() * (max - min + 1)) };
}

/** FNV-1a with a final mix, so that seeds with one different character start far apart. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) | 0;
}
