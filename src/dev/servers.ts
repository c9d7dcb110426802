/** Private servers for `make run` and the tests: an installed or unpacked MariaDB and NATS on free local ports. */
export { type MariaDbOptions, type Server, startMariaDb } from './mariadb.ts';
export { type NatsOptions, startNats } from './nats.ts';
