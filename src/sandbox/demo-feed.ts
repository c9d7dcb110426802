import { answered, type Marina, type Schemas } from '../site/snippets/client.mts';
import type { Screen } from './demo-screen.ts';
import { until } from './demo-until.ts';

type Event = Schemas['Event'];
type KnownObject = Schemas['Order'] | Schemas['Application'] | Schemas['Allocation'] | Schemas['Withdrawal'];
/** The data of events, by its `object`. */
type DataOf = { [Data in KnownObject as Data['object']]: Data };

/** Objects of kinds that come later are left out. */
function isKnown(data: Event['data']): data is KnownObject {
  return 'id' in data;
}

const maxPages = 1_000;

/** The partner's event feed from now on, shown as it is read. */
export class Feed {
  readonly #events: Event[] = [];
  #cursor: string | undefined;

  private constructor(
    private readonly marina: Marina,
    private readonly screen: Screen,
  ) {}

  /** Reads the feed to its end. */
  static async open(marina: Marina, screen: Screen): Promise<Feed> {
    const feed = new Feed(marina, screen);
    for (let pages = 0; (await feed.#readPage()).has_more; pages += 1) {
      if (pages > maxPages) throw new Error('the feed does not end');
    }
    return feed;
  }

  /** All events of one object, since the feed was opened. */
  of(id: string): Event[] {
    return this.#events.filter(({ data }) => isKnown(data) && data.id === id);
  }

  /** Shows events as they come until one says that an object is in a state: the object as it is then. */
  follow<Name extends keyof DataOf>(object: Name, id: string, state: string): Promise<DataOf[Name]> {
    const isIt = (data: Event['data']): data is DataOf[Name] => isKnown(data) && data.object === object;
    const find = () =>
      this.of(id)
        .map(({ data }) => data)
        .filter(isIt)
        .find((data) => data.state === state);
    return until(this.screen, `${object}.${state} of ${id}`, async () => {
      if (find() === undefined) await this.#read();
      return find();
    });
  }

  async #read(): Promise<void> {
    for (const event of (await this.#readPage()).data) {
      this.#events.push(event);
      const { version, type, data } = event;
      if (!isKnown(data)) continue;
      const shares = data.object === 'order' ? ` ${data.filled_quantity}/${data.quantity}` : '';
      this.screen.say(`event ${version} ${type} ${data.id}${shares}`);
    }
  }

  async #readPage(): Promise<Schemas['ListEventsResponse']> {
    const query = { limit: 100, cursor: this.#cursor };
    const { data: page } = await answered(this.marina.GET('/v1/events', { params: { query } }));
    this.#cursor = page.next_cursor;
    return page;
  }
}
