import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { gatewayOperations } from '../../src/dev/gateway-contract.ts';
import { type Examples, examplesFile, readExamples } from '../../src/docs/examples.ts';
import { assertValid, described } from '../support/described.ts';
import { takeTour } from '../support/example-tour.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

/** Set to write down anew what the pages show. */
const isRecording = process.env.MARINA_RECORD_EXAMPLES === 'true';

let gateway: TestGateway;
let taken: Examples;

before(async () => {
  gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '500' });
  taken = await takeTour(gateway);
  if (isRecording) writeFileSync(examplesFile, `${JSON.stringify(taken, undefined, 2)}\n`);
});

after(() => gateway?.stop());

describe('the recorded examples', () => {
  it('are of every operation and every type of event there is', () => {
    const { operations, events } = readExamples();
    const names = gatewayOperations.filter(({ http }) => http !== undefined).map(({ method }) => method.localName);
    assert.deepEqual(Object.keys(operations).sort(), names.sort());
    const types = ['Order', 'Application', 'Allocation'].flatMap((name) =>
      described.components.schemas[`${name}State`]['x-extensible-enum']
        .filter((state: string) => state !== 'sending')
        .map((state: string) => `${name.toLowerCase()}.${state}`),
    );
    assert.deepEqual(Object.keys(events).sort(), types.sort());
  });

  it('are what a gateway answers today, but for ids, times and the like', () => {
    const kept = readExamples();
    for (const [name, examples] of Object.entries(taken.operations)) {
      assert.deepEqual(kept.operations[name]?.map(shapeOfExample), examples.map(shapeOfExample), name);
    }
    for (const [type, event] of Object.entries(taken.events))
      assert.deepEqual(shapeOf(kept.events[type]), shapeOf(event));
  });

  it('are as described', () => {
    const { operations, events } = readExamples();
    for (const methods of Object.values<Record<string, { operationId: string; responses: object }>>(described.paths)) {
      for (const { operationId, responses } of Object.values(methods)) {
        for (const { answer } of operations[operationId] ?? []) {
          assert.ok(String(answer.status) in responses, `${operationId} describes ${answer.status}`);
        }
      }
    }
    for (const event of Object.values(events)) assertValid('/components/schemas/Event', event, { event });
  });

  it('hold no key', () => {
    assert.doesNotMatch(JSON.stringify(readExamples()), /marina_(?:test|live)_[a-z0-9]/i);
  });
});

function shapeOfExample({ title, request, answer }: Examples['operations'][string][number]): unknown {
  return [
    title,
    request.method,
    shapeOf(request.body),
    answer.status,
    shapeOf(answer.body),
    Object.keys(answer.headers),
  ];
}

/** A value without what is different each time: members and their types, and words that say what something is. */
function shapeOf(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map((item) => shapeOf(item));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([member, inside]) => [member, shapeOf(inside, member)]));
  }
  return ['object', 'code', 'param', 'reject_reason'].includes(name) ? value : typeof value;
}
