/** Where versions of Node keep what `fetch` sends with. */
const places = [Symbol.for('undici.globalDispatcher.1'), Symbol.for('undici.globalDispatcher.2')];

/** Those that the platform made by itself. */
const ofPlatform = new WeakSet<object>();

/** Remembers the platform's own dispatcher, if nobody has chosen another yet. */
export function notePlatformDispatcher(): void {
  if (present().length > 0) return;
  // Node makes its own as soon as something of `fetch` is used.
  new Headers();
  for (const made of present()) ofPlatform.add(made);
}

/** Whether `fetch` sends like a plain request of Node, because neither the program nor the environment asked for something else. */
export function hasUsualDispatcher(): boolean {
  return present().every((each) => ofPlatform.has(each) || isPlainAgent(each));
}

function present(): object[] {
  const globals = globalThis as unknown as Record<symbol, object | undefined>;
  return places.flatMap((place) => globals[place] ?? []);
}

/**
 * Whether a dispatcher is an `Agent` without options, as undici sets one when it is imported. What cannot be told counts as no: then
 * `fetch` sends, which is right for every dispatcher.
 */
function isPlainAgent(dispatcher: object): boolean {
  const { dispatch } = dispatcher as { dispatch?: unknown };
  // One with interceptors shows the class of the one behind it, with another `dispatch`. A class made from `Agent` may have its own too.
  const own = Object.getPrototypeOf(dispatcher) as { dispatch?: unknown } | null;
  if (dispatcher.constructor?.name !== 'Agent' || own === null || typeof dispatch !== 'function') return false;
  if (dispatch !== own.dispatch || Object.hasOwn(own, 'dispatch')) return false;
  const options = hidden(dispatcher, 'options');
  const factory = hidden(dispatcher, 'factory');
  if (typeof options !== 'object' || options === null) return false;
  if (typeof factory !== 'function' || factory.name !== 'defaultFactory') return false;
  return Object.entries(options).every(([name, value]) => value === undefined || name === 'maxOrigins');
}

/** A member behind a symbol of undici's. */
function hidden(dispatcher: object, description: string): unknown {
  const symbol = Object.getOwnPropertySymbols(dispatcher).find((each) => each.description === description);
  return symbol && (dispatcher as Record<symbol, unknown>)[symbol];
}
