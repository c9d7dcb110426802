// npm install @grpc/grpc-js @grpc/proto-loader
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import grpc from '@grpc/grpc-js';
import { loadFileDescriptorSetFromBuffer } from '@grpc/proto-loader';

const { MARINA_KEY, MARINA_GRPC, MARINA_TLS } = process.env;

// Whole numbers of 64 bits come as text, so that none is rounded.
const types = loadFileDescriptorSetFromBuffer(readFileSync('marina.binpb'), {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
});
const { Accounts, Orders } = grpc.loadPackageDefinition(types).marina.gateway.v1;

// What the library may repeat by itself: calls that ended with UNAVAILABLE, and no other.
const retryPolicy = {
  maxAttempts: 4,
  initialBackoff: '1s',
  maxBackoff: '10s',
  backoffMultiplier: 2,
  retryableStatusCodes: ['UNAVAILABLE'],
};
const services = [
  ...['Accounts', 'Allocations', 'Applications', 'Events', 'Limits', 'Orders', 'Reference', 'Wallet', 'Withdrawals'],
];
const name = services.map((service) => ({ service: `marina.gateway.v1.${service}` }));
const options = { 'grpc.service_config': JSON.stringify({ methodConfig: [{ name, retryPolicy }] }) };
const channel = MARINA_TLS === 'off' ? grpc.credentials.createInsecure() : grpc.credentials.createSsl();
const accounts = new Accounts(MARINA_GRPC, channel, options);
const orders = new Orders(MARINA_GRPC, channel, options);

// One call, for at most 45 seconds with all its repetitions.
function call(client, method, request, more = {}) {
  const metadata = new grpc.Metadata();
  for (const [key, value] of Object.entries({ authorization: `Bearer ${MARINA_KEY}`, ...more }))
    metadata.set(key, value);
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 45_000;
    client[method](request, metadata, { deadline }, (error, answer) =>
      error ? reject(marinaError(error)) : resolve(answer),
    );
  });
}

// Adds the code of docs/errors, and what there is of `param` and `reject_reason`, to the library's error.
function marinaError(error) {
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  const details = bytes ? types['google.rpc.Status'].deserialize(bytes).details : [];
  const own = details.find(({ type_url }) => type_url.endsWith('/marina.gateway.v1.Error'));
  return own ? Object.assign(error, { marina: types['marina.gateway.v1.Error'].deserialize(own.value) }) : error;
}

const {
  data: [first],
} = await call(accounts, 'ListAccounts', { limit: 1 });
const request = {
  account: first.account,
  symbol: 'ZENITHBANK',
  side: 'ORDER_SIDE_BUY',
  quantity: 100,
  type: 'ORDER_TYPE_MARKET',
};
// Kept with the order in your database before the call: whatever happens, the same call may be made again.
const key = randomUUID();
const order = await call(orders, 'CreateOrder', request, { 'idempotency-key': key });
console.log(order.id, order.state);

try {
  await call(orders, 'GetOrder', { id: 'ord_1' });
} catch (error) {
  console.log(grpc.status[error.code], error.marina?.code);
}
accounts.close();
orders.close();
