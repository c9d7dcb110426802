/**
 * Keeps an older read from undoing a newer one. Reads of the same thing may be under way at once and end in any order;
 * what each brought is used only if no read that began later has been used already.
 */
export class ReadOrder {
  #begun = 0;
  #used = 0;

  /** To be called before a read begins. The answer, called when the read has ended, tells whether to use what it brought. */
  begin(): () => boolean {
    this.#begun += 1;
    const number = this.#begun;
    return () => {
      if (number < this.#used) return false;
      this.#used = number;
      return true;
    };
  }
}
