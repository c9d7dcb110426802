import { styleText } from 'node:util';

/** Where a demo is shown. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** One part of a demo: what it shows, in the words of the summary, and how. */
export interface Chapter {
  readonly title: string;
  readonly shows: string;
  /** Throws when anything does not hold. */
  run(): Promise<void>;
}

type Colour = 'bold' | 'dim' | 'green' | 'red' | 'cyan';

const turns = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/**
 * Shows a demo: on a terminal with what is waited for as it goes, and in colour unless NO_COLOR is set; as plain lines
 * anywhere else.
 */
export class Screen {
  readonly #isTerminal: boolean;
  readonly #isColoured: boolean;

  constructor(
    private readonly output: Output,
    environment: NodeJS.ProcessEnv,
  ) {
    this.#isTerminal = output.isTTY === true && environment.TERM !== 'dumb';
    this.#isColoured = this.#isTerminal && !environment.NO_COLOR;
  }

  say(line: string): void {
    // This line shows the event that the demo waits for.
    this.output.write(`${this.#isTerminal ? '\u001b[K' : ''}   ${line}\n`);
  }

  /** Waits for something that may take a while; a terminal shows for what, and for how long already. */
  async waiting<T>(what: string, work: Promise<T>): Promise<T> {
    if (!this.#isTerminal) return work;
    const began = performance.now();
    let turn = 0;
    const timer = setInterval(() => {
      const time = `(${((performance.now() - began) / 1000).toFixed(0)} s)`;
      turn += 1;
      // A line that does not fit would be a new one each time.
      const room = Math.max(0, (this.output.columns || 80) - time.length - 7);
      const mark = this.#in('cyan', turns[turn % turns.length] ?? '');
      this.output.write(`\r   ${mark} ${what.slice(0, room)} ${time}\u001b[K\r`);
    }, 100);
    try {
      return await work;
    } finally {
      clearInterval(timer);
      this.output.write('\u001b[K');
    }
  }

  /** Runs the chapters until one does not hold, and sums up. Tells the error of the one that did not. */
  async play(chapters: readonly Chapter[]): Promise<unknown> {
    const began = performance.now();
    let failure: unknown;
    let held = 0;
    for (const { title, run } of chapters) {
      const heading = `${held + 1}/${chapters.length}  ${title}`;
      this.output.write(`\n${this.#in('bold', heading)}\n`);
      try {
        await run();
      } catch (error) {
        failure = error ?? new Error('it failed without a reason');
        break;
      }
      held += 1;
    }
    this.output.write(`\n${this.#in('bold', 'What was shown')}\n`);
    for (const [index, { shows }] of chapters.entries()) this.say(this.#summed(shows, index, held));
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    if (failure === undefined) this.output.write(`\n${this.#in('green', 'Everything held')} (${seconds} s).\n`);
    return failure;
  }

  #summed(shows: string, index: number, held: number): string {
    if (index < held) return `${this.#in('green', '✓')} ${shows}`;
    if (index === held) return `${this.#in('red', '✗')} ${shows}`;
    return this.#in('dim', `– ${shows}: not reached`);
  }

  #in(colour: Colour, text: string): string {
    return this.#isColoured ? styleText(colour, text, { validateStream: false }) : text;
  }
}

/** An amount of money for people: kobo as naira. */
export function naira(kobo: number): string {
  return `₦${(kobo / 100).toLocaleString('en-NG', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}
