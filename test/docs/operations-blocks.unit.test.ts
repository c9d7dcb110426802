import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { PageCalls } from '../support/page-acts.ts';
import { blocksOf, shellLanguages } from '../support/page-blocks.ts';

const folder = 'docs/operations';
const operatorsPages = readdirSync(folder)
  .filter((name) => name.endsWith('.md'))
  .map((name) => `${folder}/${name}`);
const otherPages = ['README.md', 'docs/MAKE-RUN.md', 'docs/FIX.md', 'docs/SANDBOX.md'];

describe("the blocks to paste on the operators' pages", () => {
  let calls: PageCalls;
  before(async () => {
    calls = await PageCalls.load();
  });

  const read = (page: string) => {
    const blocks = blocksOf(readFileSync(page, 'utf8'), shellLanguages);
    return calls.ofPage(blocks).map((found, index) => ({ ...found, where: `${page}:${blocks[index]?.from}` }));
  };
  const ofText = (...lines: string[]) => {
    const text = ['```sh', ...lines, '```'].join('\n');
    return calls.ofPage(blocksOf(text, shellLanguages))[0];
  };

  it('change at most one thing each', () => {
    const wrong = [...operatorsPages, ...otherPages].flatMap(read).filter(({ acts }) => acts.length > 1);
    assert.deepEqual(
      wrong.map(({ where, acts }) => `${where}: ${acts.join(', ')}`),
      [],
    );
  });

  it('either only look, or change something without a look-up that could choose what', () => {
    const blocks = operatorsPages.flatMap(read);
    const mixed = blocks.filter(({ acts, looks }) => acts.length > 0 && looks.length > 0);
    assert.deepEqual(
      mixed.map(({ where, looks, acts }) => `${where}: ${looks.join(', ')} with ${acts.join(', ')}`),
      [],
    );
    assert.ok(blocks.filter(({ acts }) => acts.length === 1).length > 40, 'acts are found');
    assert.ok(blocks.filter(({ looks }) => looks.length > 0).length > 80, 'look-ups are found');
  });

  it('a block looks or acts by what the protos say of its calls', () => {
    const pause = `admin Trading/PauseTrading '{"reason":"the broker is away"}'`;
    const resume = `admin Trading/ResumeTrading '{"reason":"it is back"}'`;
    assert.deepEqual(ofText(pause, resume)?.acts, ['Trading/PauseTrading', 'Trading/ResumeTrading']);
    assert.deepEqual(ofText(`admin Audit/ListEntries '{}'`, resume), {
      looks: ['Audit/ListEntries'],
      acts: ['Trading/ResumeTrading'],
    });
    assert.deepEqual(ofText('curl -s http://127.0.0.1:9464/readyz', 'date -u'), { looks: [], acts: [] });
    assert.deepEqual(ofText(`curl -s http://127.0.0.1:8080/v1/orders \\`, `  -d '{"symbol":"GTCO"}'`)?.acts, [
      'a request with a body',
    ]);
    assert.deepEqual(ofText(`create() { curl -s "http://x/$1" -d "$2" | head -1; }`)?.acts, []);
    assert.deepEqual(ofText(`create() { curl -s "http://x/$1" -d "$2"; }`, `id=$(create orders '{}')`)?.acts, [
      'create',
    ]);
    assert.deepEqual(ofText(`call SetCash '{}'`, `call GetReads '{}'`), {
      looks: ['Controls/GetReads'],
      acts: ['Controls/SetCash'],
    });
    assert.deepEqual(
      ofText(`wallets() { grpcurl -d "$2" "$address/$1 marina.admin.v1.Wallets/$1"; }`, `wallets DebitWallet '{}'`),
      {
        looks: [],
        acts: ['Wallets/DebitWallet'],
      },
    );
    assert.deepEqual(ofText('(cd /opt/marina && node src/main.js keys status)')?.acts, []);
    assert.deepEqual(ofText('(cd /opt/marina && node src/main.js keys reseal)')?.acts, ['src/main.js keys reseal']);
  });
});
