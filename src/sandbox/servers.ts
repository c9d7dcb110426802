/** Private servers for `make run` and the tests: an installed or unpacked MariaDB and NATS on free local ports. */
export { askedServer, findAsked, startMariaDb } from './mariadb.ts';
export { startNats } from './nats.ts';
export type { Server } from './private-server.ts';
