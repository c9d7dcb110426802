/** How the workbench talks to the gateway. The key is in the memory of this page only, and goes to this gateway only. */

const callTimeoutMs = 30_000;
const pageSize = 100;
/** Of a feed that grew by more than this at once, only the end is shown. */
const mostPages = 10;
const retryMs = 2_000;
/** The stream has a message at least every ten seconds; a longer silence means that it broke. */
const silenceMs = 25_000;

/** An error that the gateway answered with; its status is 0 when no answer came. */
export class Refusal extends Error {
  constructor(status, { code, message, doc_url: url } = {}) {
    super(message ?? 'No answer came from the gateway.');
    Object.assign(this, { status, code, url });
  }
}

/** The calls of a key. Reads for the page itself are not listed among the key's requests; what a person asks for is. */
export class Gateway {
  #key;
  #base;
  #ending = new AbortController();

  /** `base` stands before every path. */
  constructor(key, base) {
    this.#key = key;
    this.#base = base;
  }

  /** Ends all calls, and forgets the key. */
  close() {
    this.#key = '';
    this.#ending.abort();
  }

  get isClosed() {
    return this.#ending.signal.aborted;
  }

  read(path) {
    return this.#call('GET', path, { 'Marina-Unlogged': 'true' });
  }

  act(method, path, body) {
    return this.#call(method, path, body === undefined ? {} : { 'Content-Type': 'application/json' }, body);
  }

  async #call(method, path, headers, body) {
    let response;
    try {
      response = await fetch(this.#base + path, {
        method,
        headers: { ...headers, Authorization: `Bearer ${this.#key}` },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.any([this.#ending.signal, AbortSignal.timeout(callTimeoutMs)]),
      });
    } catch {
      throw new Refusal(0);
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Refusal(response.status, answer.error);
    return answer;
  }

  /**
   * Follows the feed: calls `onEvents` with events in their order, and `onState` with `live` or `waiting`. It begins after the
   * cursor; without one, at the first event. Ends when the gateway is closed, and throws when the key is refused.
   */
  async follow(cursor, onEvents, onState) {
    let after = cursor;
    const readOn = async () => {
      for (let pages = 0; ; pages += 1) {
        if (pages === mostPages) {
          const latest = await this.read(`/v1/sandbox/events?limit=${pageSize}`);
          after = latest.feed_cursor;
          onEvents(latest.data.reverse());
          return;
        }
        const from = after === null ? '' : `&cursor=${encodeURIComponent(after)}`;
        const page = await this.read(`/v1/events?limit=${pageSize}${from}`);
        if (page.data.length > 0) {
          after = page.next_cursor;
          onEvents(page.data);
        }
        if (!page.has_more) return;
      }
    };
    while (!this.isClosed) {
      try {
        await this.#watch(after, readOn, () => onState('live'));
      } catch (error) {
        if (this.isClosed) return;
        if (error.status === 401 || error.status === 403) throw error;
      }
      if (this.isClosed) return;
      onState('waiting');
      await new Promise((resolve) => setTimeout(resolve, retryMs));
      await readOn().catch(() => undefined);
    }
  }

  /** Opens Connect's stream of events. Each message is a reason to read on: REST's events have the form that partners see. */
  async #watch(after, readOn, onLive) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), silenceMs);
    try {
      const response = await fetch(`${this.#base}/marina.gateway.v1.Events/WatchEvents`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${this.#key}`,
          'Content-Type': 'application/connect+json',
          'Connect-Protocol-Version': '1',
          'Marina-Unlogged': 'true',
        },
        body: enveloped(JSON.stringify(after === null ? {} : { cursor: after })),
        signal: AbortSignal.any([this.#ending.signal, silence.signal]),
      });
      if (!response.ok) throw new Refusal(response.status);
      onLive();
      const reader = response.body.getReader();
      for (;;) {
        const { done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silenceMs);
        await readOn();
      }
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }
}

/** A message of Connect's streams: a byte of flags, the length, the text. */
function enveloped(text) {
  const bytes = new TextEncoder().encode(text);
  const whole = new Uint8Array(5 + bytes.length);
  new DataView(whole.buffer).setUint32(1, bytes.length);
  whole.set(bytes, 5);
  return whole;
}
