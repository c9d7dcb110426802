import { shownPath } from './files.ts';
import type { Sandbox } from './sandbox-file.ts';
import { logFile, sandboxFile } from './settings.ts';

/** Writes lines to try that work when pasted: with the real key, account and addresses. */
export function banner(sandbox: Sandbox, dataDir: string, seconds: number): string {
  const [partner] = sandbox.partners;
  if (partner === undefined) return '';
  const { rest_url: rest, grpc_address: grpc } = sandbox;
  const key = `-H 'Authorization: Bearer ${partner.key}'`;
  const once = `-H "Idempotency-Key: try-$(date +%s%N)"`;
  const order = { account: partner.account, symbol: 'ZENITHBANK', side: 'buy', quantity: 10, type: 'market' };
  const message = { ...order, side: 'ORDER_SIDE_BUY', quantity: '10', type: 'ORDER_TYPE_MARKET' };
  const operator = `-H 'Authorization: Bearer ${sandbox.operator_token}'`;
  const logs = [logFile(dataDir, 'gateway'), logFile(dataDir, 'simulator')].map(shownPath).join(', ');
  const bufCurl = 'npx buf curl --protocol grpc --http2-prior-knowledge --reflect';
  return `
  Marina is ready (${seconds.toFixed(1)} s).

    REST ${rest}   gRPC ${grpc}   operator ${sandbox.admin_address}   metrics ${sandbox.ops_url}/metrics
    Database: ${sandbox.database}

  Place an order, look at it, and at what has happened since:

curl -s ${rest}/v1/orders ${key} ${once} -H 'Content-Type: application/json' -d '${JSON.stringify(order)}'

curl -s '${rest}/v1/orders?limit=1' ${key}

curl -s ${rest}/v1/events ${key}

  See it happen in a browser, with the key from above: ${rest}/docs/workbench

  The same order by gRPC:

${bufCurl} ${key} ${once} -d '${JSON.stringify(message)}' http://${grpc}/marina.gateway.v1.Orders/CreateOrder

grpcurl -plaintext ${key} ${once} -d '${JSON.stringify(message)}' ${grpc} marina.gateway.v1.Orders/CreateOrder

  Both partners' events come to a webhook receiver here, which verifies them; this shows each. Its log:
  ${shownPath(logFile(dataDir, 'receiver'))}

  As the operator, an hour later:

${bufCurl} ${operator} -d '{"by":"3600s"}' http://${sandbox.admin_address}/marina.admin.v1.Clock/AdvanceClock

  Keys and addresses: ${shownPath(sandboxFile(dataDir))}   Logs: ${logs}
  Everything a partner does, step by step: make demo   Stop: Ctrl-C
`;
}
