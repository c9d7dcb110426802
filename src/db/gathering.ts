interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolvers: { readonly resolve: (answer: Answer) => void; readonly reject: (error: unknown) => void }[];
}

/**
 * Gathers what is asked for in one turn of the event loop, so that it shares a round trip: under load most of what a
 * read costs is the round trip. What is of one group goes together, at most `most` at a time; what has the same name
 * within its group is asked for once.
 */
export class Gathering<Asked, Answer> {
  #groups = new Map<string, Map<string, Waiting<Asked, Answer>>>();

  /** `answer` answers some of a group's questions, in their order. */
  constructor(
    private readonly most: number,
    private readonly answer: (group: string, asked: readonly Asked[]) => Promise<readonly Answer[]>,
  ) {}

  ask(group: string, name: string, asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#groups.size === 0) setImmediate(() => this.#askAll());
      const waiting = this.#groups.get(group) ?? new Map<string, Waiting<Asked, Answer>>();
      this.#groups.set(group, waiting);
      const known = waiting.get(name);
      if (known === undefined) waiting.set(name, { asked, resolvers: [{ resolve, reject }] });
      else known.resolvers.push({ resolve, reject });
    });
  }

  #askAll(): void {
    const groups = this.#groups;
    this.#groups = new Map();
    for (const [group, waiting] of groups) {
      const all = [...waiting.values()];
      for (let at = 0; at < all.length; at += this.most) void this.#askTogether(group, all.slice(at, at + this.most));
    }
  }

  async #askTogether(group: string, together: readonly Waiting<Asked, Answer>[]): Promise<void> {
    try {
      const answers = await this.answer(
        group,
        together.map(({ asked }) => asked),
      );
      for (const [index, { resolvers }] of together.entries()) {
        for (const { resolve } of resolvers) resolve(answers[index] as Answer);
      }
    } catch (error) {
      for (const { resolvers } of together) for (const { reject } of resolvers) reject(error);
    }
  }
}

/** Fills a list up to a power of two, so that few statements need preparing. */
export function fillPlaces<Item>(items: readonly Item[], filler: Item): Item[] {
  const places = 2 ** Math.ceil(Math.log2(items.length));
  return Array.from({ length: places }, (_, at) => items[at] ?? filler);
}
