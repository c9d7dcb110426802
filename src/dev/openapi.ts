/** Writes the OpenAPI document to standard output: `node --import tsx src/dev/openapi.ts > openapi.json`. */
import { readComments } from '../docs/comments.ts';
import { readExamples } from '../docs/examples.ts';
import { openApiDocument } from '../docs/openapi/document.ts';
import { gatewayOperations } from './gateway-contract.ts';

const reference = { operations: gatewayOperations, comments: readComments(), examples: readExamples() };
const addresses = { baseUrl: 'https://marina.example', grpcAddress: 'marina.example:443' };
process.stdout.write(`${JSON.stringify(openApiDocument(reference, addresses), undefined, 2)}\n`);
