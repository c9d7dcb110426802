/** Writes the OpenAPI document to standard output: `node --import tsx src/tools/openapi.ts > openapi.json`. */
import { readComments } from '../site/comments.ts';
import { readExamples } from '../site/examples.ts';
import { gatewayOperations } from '../site/gateway-contract.ts';
import { openApiDocument } from '../site/openapi/document.ts';

const reference = { operations: gatewayOperations, comments: readComments(), examples: readExamples() };
const addresses = { baseUrl: 'https://marina.example', grpcAddress: 'marina.example:443' };
process.stdout.write(`${JSON.stringify(openApiDocument(reference, addresses), undefined, 2)}\n`);
