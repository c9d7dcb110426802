import type { Socket } from 'node:net';
import { type ConnectionOptions, createPool, type Pool, type PoolConnection, type PoolOptions } from 'mysql2';

/** The driver's options to connect. Its socket is made here, so that it can be closed here. */
export type Way = ConnectionOptions & { readonly stream: () => Socket };

const closed = 'the database is closed';
/** How many callers may wait for a connection. */
const maxWaiting = 2_000;

/** Is called with a connection, or with the error for which there is none. */
export type OnConnection = (error: unknown, connection?: PoolConnection) => void;

/** A pool of the driver, which connects in one way for as long as it lives. */
interface DriverPool {
  readonly pool: Pool;
  readonly sockets: Set<Socket>;
  /** Its connections that nobody has. */
  readonly unused: Set<PoolConnection>;
}

/**
 * Database connections, at most so many at a time. A pool of the driver connects in the way that it was made with, so when the
 * access or the host changes another one takes its place. The former one's connections are closed when they are given back.
 */
export class RenewedPool {
  readonly #pools = new Set<DriverPool>();
  readonly #inUse = new Set<PoolConnection>();
  readonly #waiting: OnConnection[] = [];
  #current: DriverPool;
  /** Connections in use, and those being made. */
  #taken = 0;
  #isClosed = false;

  /** `opened` is called with each new connection, before anybody gets it. */
  constructor(
    private readonly size: number,
    private readonly options: PoolOptions,
    private readonly way: () => Way,
    private readonly opened: (connection: PoolConnection) => void,
  ) {
    this.#current = this.#open();
  }

  /** The connections that nobody has. */
  get unused(): ReadonlySet<PoolConnection> {
    return this.#current.unused;
  }

  /** Takes a connection, which must be released or destroyed once. */
  getConnection(done: OnConnection): void {
    if (this.#isClosed) done(new Error(closed));
    else if (this.#taken < this.size) this.#take(done);
    else if (this.#waiting.length < maxWaiting) this.#waiting.push(done);
    else done(new Error('too many wait for a database connection'));
  }

  /** New connections are made in the way of now. `isLost`: statements at former hosts would wait in vain, so they fail. */
  renew(isLost = false): void {
    if (this.#isClosed) return;
    const former = this.#current;
    this.#current = this.#open();
    for (const connection of former.unused) connection.destroy();
    if (isLost) this.#cutOffFormer();
    this.#endIfOver(former);
  }

  #cutOffFormer(): void {
    for (const one of this.#pools) if (one !== this.#current) for (const socket of one.sockets) socket.destroy();
  }

  /** Closes all connections when they have answered. Nobody gets another one. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const done of this.#waiting.splice(0)) done(new Error(closed));
    await Promise.all([...this.#pools].map(({ pool }) => pool.promise().end()));
    this.#pools.clear();
  }

  #open(): DriverPool {
    const way = this.way();
    const sockets = new Set<Socket>();
    const stream = () => {
      const socket = way.stream();
      sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        this.#endIfOver(opened);
      });
      return socket;
    };
    const pool = createPool({ ...this.options, ...way, stream, connectionLimit: this.size });
    const opened = { pool, sockets, unused: new Set<PoolConnection>() };
    pool.on('release', (connection) => opened.unused.add(connection));
    pool.on('acquire', (connection) => opened.unused.delete(connection));
    pool.on('connection', (connection: PoolConnection) => this.#adopt(connection, opened));
    this.#pools.add(opened);
    return opened;
  }

  /** Counts a connection as free when it is given back. */
  #adopt(connection: PoolConnection, home: DriverPool): void {
    const release = connection.release.bind(connection);
    const destroy = connection.destroy.bind(connection);
    const end = (how: () => void) => {
      how();
      if (this.#inUse.delete(connection)) this.#free();
    };
    connection.destroy = () => {
      home.unused.delete(connection);
      end(destroy);
    };
    connection.release = () => {
      if (home === this.#current) end(release);
      else connection.destroy();
    };
    for (const event of ['end', 'error']) connection.once(event, () => home.unused.delete(connection));
    this.opened(connection);
  }

  #take(done: OnConnection): void {
    this.#taken += 1;
    this.#ask(done);
  }

  #ask(done: OnConnection): void {
    const asked = this.#current;
    asked.pool.getConnection((error, connection) => {
      if (!error) {
        this.#inUse.add(connection);
        return done(null, connection);
      }
      // Perhaps only the former way leads nowhere.
      if (asked !== this.#current) return this.#ask(done);
      this.#free();
      done(error);
    });
  }

  #free(): void {
    this.#taken -= 1;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#take(next);
  }

  /** The driver's pool has a timer, so a former one is ended, when its last connection is closed. */
  #endIfOver(one: DriverPool): void {
    if (one === this.#current || one.sockets.size > 0 || !this.#pools.delete(one)) return;
    one.pool.end(() => {});
  }
}
