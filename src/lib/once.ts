/** Makes a function that gives something back the first time it is called, and does nothing after that. */
export function once(giveBack: () => void): () => void {
  let isGiven = false;
  return () => {
    if (isGiven) return;
    isGiven = true;
    giveBack();
  };
}
