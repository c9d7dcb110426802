/**
 * Partners' endpoints as bare https servers are: paths under /hang/ never answer, all others answer 200 at once. Told
 * `ask`, it says how many events came since it was asked before, when the first and the last came, and each one's time. Told
 * `tellAfter`, it says when so many have come since then.
 */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

let times: [id: string, atMs: number][] = [];
let hanging = 0;
let tellAfter: number | undefined;
const server = createServer(
  { cert: process.env.BASELINE_CERT ?? '', key: process.env.BASELINE_KEY ?? '' },
  (request, response) => {
    if (request.url?.startsWith('/hang/')) {
      hanging += 1;
      return;
    }
    times.push([String(request.headers['webhook-id']), Date.now()]);
    if (times.length === tellAfter) process.send?.({ came: tellAfter });
    request.resume().on('end', () => response.end());
  },
);
server.keepAliveTimeout = 60_000;
process.on('message', (question: { ask: number } | { tellAfter: number }) => {
  if ('tellAfter' in question) {
    tellAfter = question.tellAfter;
    return;
  }
  process.send?.({ ask: question.ask, times: times.length > 20_000 ? [] : times, ...span(), hanging });
  times = [];
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));

function span() {
  return { count: times.length, firstAt: times[0]?.[1] ?? 0, lastAt: times.at(-1)?.[1] ?? 0 };
}
