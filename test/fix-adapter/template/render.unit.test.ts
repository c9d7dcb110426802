/** The values of a lookup file that changes while messages are made. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noLookups, parseLookups } from '../../../src/fix-adapter/template/lookups.ts';
import { parseTemplate } from '../../../src/fix-adapter/template/parse.ts';
import { MissingValue, renderer } from '../../../src/fix-adapter/template/render.ts';
import { fixOrder } from '../../support/fix-order.ts';

const order = fixOrder({ account: 'NG-1', partner: 'par_a', symbol: 'MTNN' });
const keys = { account: 'NG-1', partner: 'par_a', symbol: 'MTNN' } as const;

describe('a message with values of a lookup file', () => {
  for (const use of ['order', 'cancel', 'status'] as const) {
    for (const by of ['account', 'partner', 'symbol'] as const) {
      it(`the values of a message are those of the file as it is now, in the message "${use}" and by ${by}`, () => {
        let lookups = noLookups;
        let reads = 0;
        const more = renderer(
          parseTemplate(`[${use}]\n5001={${by}.code}-{${by}.code}`),
          () => {
            reads += 1;
            return lookups;
          },
          (symbol) => symbol,
        );
        const missing = () =>
          assert.throws(() => more(use, order), new MissingValue(`{${by}.code}`), 'no value is in the file');
        missing();
        for (const value of ['C1', 'C2', 'C1']) {
          lookups = parseLookups(`${by}=${keys[by]}|code=${value}`);
          assert.deepEqual(more(use, order), [[5001, `${value}-${value}`]]);
          assert.deepEqual(more(use, order), [[5001, `${value}-${value}`]]);
        }
        lookups = parseLookups(`${by}=OTHER|code=C3`);
        missing();
        assert.equal(reads, 8, 'one message has the values of one file');
      });
    }
  }
});
