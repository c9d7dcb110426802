import { join } from 'node:path';
import { readComments } from '../../site/comments.ts';
import { gatewayOperations } from '../../site/gateway-contract.ts';
import { openApiDocument } from '../../site/openapi/document.ts';
import { type ContractDocument, readContract } from './contract.ts';
import { pythonAsyncOperations, pythonContract, pythonOperations } from './python.ts';
import { typescriptCalls, typescriptContract } from './typescript.ts';

const clients = join(import.meta.dirname, '../../../clients');

/**
 * The files of the clients that are made of the contract. They are committed: a partner takes a client from its folder with
 * npm or pip alone, and a review shows what a change of the contract does to partners' code.
 */
export function clientFiles(): { path: string; text: string }[] {
  const reference = {
    operations: gatewayOperations,
    comments: readComments(),
    examples: { operations: {}, events: {} },
  };
  const addresses = { baseUrl: 'https://marina.example', grpcAddress: 'marina.example:443' };
  const document = openApiDocument(reference, addresses);
  const contract = readContract(JSON.parse(JSON.stringify(document)) as ContractDocument);
  return [
    { path: join(clients, 'typescript/src/contract.ts'), text: typescriptContract(contract) },
    { path: join(clients, 'typescript/src/calls.ts'), text: typescriptCalls(contract) },
    { path: join(clients, 'python/src/marina/contract.py'), text: pythonContract(contract) },
    { path: join(clients, 'python/src/marina/operations.py'), text: pythonOperations(contract) },
    { path: join(clients, 'python/src/marina/async_operations.py'), text: pythonAsyncOperations(contract) },
  ];
}
