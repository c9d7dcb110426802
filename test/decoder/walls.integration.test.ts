import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { decoderProgram, neededWalls, tryWalls, type Wall } from '../../src/decoder/decoder.ts';
import { ImageChecker } from '../../src/gateway/trading/applications/image-checker.ts';
import { createLogger } from '../../src/kit/log.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startGateway } from '../support/gateway.ts';
import {
  builderWithout,
  connectTo,
  hasLeftOpen,
  runHostileDecoder,
  runSystemCalls,
} from '../support/hostile-decoder.ts';
import { noiseJpeg, noisePng } from '../support/images.ts';
import { testServers } from '../support/servers.ts';

const found = await tryWalls();
/** Runs a test if this machine offers the walls it is about. */
const needs = (...walls: Wall[]) => ({ skip: walls.every((wall) => found.has(wall)) ? false : 'not offered here' });
const needsRoot = { skip: process.getuid?.() === 0 ? false : 'needs root to become another user' };
const isWhole = neededWalls.every((wall) => found.has(wall));

describe('a decoder that somebody has taken over', () => {
  process.env.MARINA_TEST_SECRET = 'secret';
  const secretFile = join(temporaryFolder(), 'secret');
  writeFileSync(secretFile, 'secret');
  after(() => {
    delete process.env.MARINA_TEST_SECRET;
  });

  for (const walled of [true, false]) {
    it(`has an empty environment ${walled ? 'behind' : 'without'} walls`, async () => {
      const { found: could } = await runHostileDecoder({ environment: 'return JSON.stringify(process.env);' }, walled);
      assert.equal(could.environment, '{}');
    });
  }

  it('cannot read the memory or the environment of the gateway', needs('files'), async () => {
    const attempts = Object.fromEntries(
      ['environ', 'mem', 'maps', 'cmdline'].map((name) => [
        name,
        `return String(fs.openSync('/proc/${process.pid}/${name}', 'r'));`,
      ]),
    );
    const { found: could } = await runHostileDecoder(attempts, true);
    assert.deepEqual(could, { environ: 'EACCES', mem: 'EACCES', maps: 'EACCES', cmdline: 'EACCES' });
    // Without walls, anybody of the same user can.
    const open = await runHostileDecoder({ environ: attempts.environ ?? '' }, false);
    assert.match(open.found.environ ?? '', /^\d+$/);
  });

  for (const [left, removed, missing] of [
    ['files', "call('unshare', 0x10000000) == 0", 'user-namespace'],
    ['user-namespace', 'restrict_files()', 'files'],
  ] as const) {
    it(`cannot read the environment of the gateway if only the wall ${left} holds`, needs(left), async () => {
      const attempts = { environ: `return String(fs.openSync('/proc/${process.pid}/environ', 'r'));` };
      const { found: could, walls } = await runHostileDecoder(attempts, true, builderWithout(removed));
      assert.ok(walls.includes(left) && !walls.includes(missing), walls);
      assert.equal(could.environ, 'EACCES');
    });
  }

  it('cannot read the environment of a gateway whose Node may be run and not read', needsRoot, async () => {
    // The kernel keeps others out of a process whose program its user may not read. The Dockerfile makes Node so.
    const folder = temporaryFolder();
    const node = join(folder, 'node');
    chmodSync(folder, 0o711);
    copyFileSync(process.execPath, node);
    chmodSync(node, 0o711);
    const nobody = { uid: 65_534, gid: 65_534, cwd: '/' };
    const gateway = spawn(node, ['--eval', "console.log('up'); setInterval(() => {}, 1000);"], nobody);
    await once(gateway.stdout, 'data');
    const read = `require('node:fs').openSync('/proc/${gateway.pid}/environ', 'r')`;
    // The same copy, because nobody else may enter the folder of the Node that runs the tests.
    const decoder = spawnSync(node, ['--eval', read], { ...nobody, encoding: 'utf8' });
    gateway.kill('SIGKILL');
    assert.match(decoder.stderr, /EACCES/);
  });

  it('reads no file and lists no folder but those it needs', needs('files'), async () => {
    const { found: could } = await runHostileDecoder(
      {
        secret: `return fs.readFileSync(${JSON.stringify(secretFile)}, 'utf8');`,
        passwords: "return fs.readFileSync('/etc/passwd', 'utf8');",
        folder: "return fs.readdirSync('/').join();",
        itself: "return fs.readFileSync('/proc/self/environ', 'utf8');",
      },
      true,
    );
    assert.deepEqual(could, { secret: 'EACCES', passwords: 'EACCES', folder: 'EACCES', itself: 'EACCES' });
    // Node 24 reads this file before it loads a package, and ends if it may not.
    const { reads } = await decoderProgram();
    assert.ok(reads.includes(join(import.meta.dirname, '../../package.json')), reads.join());
  });

  it('has no file that was left open for its gateway', needs('limits'), async () => {
    assert.equal(await hasLeftOpen(secretFile), 'closed');
  });

  it('reaches no network, so not the database either', needs('system-calls'), async () => {
    const { databaseUrl, natsUrl } = await testServers();
    const attempts = {
      database: connectTo(Number(new URL(databaseUrl).port)),
      nats: connectTo(Number(new URL(natsUrl).port)),
      listening: "await new Promise((r, f) => net.createServer().on('error', f).listen(0, r));",
      local: "await new Promise((r, f) => net.connect('\\0abstract').on('connect', r).on('error', f));",
    };
    const { found: could } = await runHostileDecoder(attempts, true);
    assert.deepEqual(new Set(Object.values(could)), new Set(['EPERM']));
    assert.equal((await runHostileDecoder({ database: attempts.database }, false)).found.database, 'done');
  });

  it('writes no file anywhere', needs('system-calls'), async () => {
    const file = JSON.stringify(join(temporaryFolder(), 'written'));
    const { found: could } = await runHostileDecoder(
      {
        write: `fs.writeFileSync(${file}, 'bytes of a document');`,
        append: `fs.appendFileSync(${JSON.stringify(secretFile)}, 'x');`,
        folder: `fs.mkdirSync(${file});`,
        link: `fs.symlinkSync('/', ${file});`,
        remove: `fs.unlinkSync(${JSON.stringify(secretFile)});`,
        rename: `fs.renameSync(${JSON.stringify(secretFile)}, ${file});`,
        rights: `fs.chmodSync(${JSON.stringify(secretFile)}, 0o777);`,
        shared: "fs.writeFileSync('/dev/shm/marina-test', 'x');",
      },
      true,
    );
    assert.deepEqual([...new Set(Object.values(could))], ['EPERM'], JSON.stringify(could));
    assert.equal(readFileSync(secretFile, 'utf8'), 'secret');
  });

  it('starts no process and signals none', needs('system-calls'), async () => {
    const { found: could } = await runHostileDecoder(
      {
        program: "execFileSync('/bin/true');",
        gateway: `process.kill(${process.pid}, 0);`,
        everybody: 'process.kill(-1, 0);',
        priority: `require('node:os').setPriority(${process.pid}, 19);`,
      },
      true,
    );
    const codes = new Set(Object.values(could));
    assert.ok(
      [...codes].every((code) => /EPERM|ERR_SYSTEM_ERROR/.test(code)),
      JSON.stringify(could),
    );
  });

  it(
    'has no signal sent in its name, moves no process, and stays bound to its gateway',
    needs('system-calls'),
    async () => {
      const eperm = constants.errno.EPERM;
      const reader = 'fileno($reader)';
      const errors = await runSystemCalls(
        [
          ['fcntl', `${reader}, 8, ${process.pid}`],
          ['fcntl', `${reader}, 10, 9`],
          ['fcntl', `${reader}, 15, pack('ll', 1, ${process.pid})`],
          ['ioctl', `1, 0x8901, pack('l', ${process.pid})`],
          ['ioctl', `1, 0x8902, pack('l', ${process.pid})`],
          ['prctl', '1, 0, 0, 0, 0'],
          ['setAffinity', `${process.pid}, 8, pack('Q', 1)`],
          // The same calls still work in the forms that Node needs.
          ['fcntl', `${reader}, 3, 0`],
        ],
        // Newer kernels keep signals in by the wall `files` too.
        builderWithout('restrict_files()'),
      );
      assert.deepEqual(errors, [...Array.from({ length: 7 }, () => eperm), 0]);
    },
  );

  it('gets no other memory without end either', needs('limits'), async () => {
    // Shared, as a stack, and such as can only be read.
    const kinds = ['3, 0x21', '3, 0x122', '1, 0x22'];
    const errors = await runSystemCalls(kinds.map((kind) => ['mmap', `0, 5_000_000_000, ${kind}, -1, 0`]));
    assert.deepEqual(errors, [constants.errno.ENOMEM, constants.errno.ENOMEM, constants.errno.ENOMEM]);
  });

  it('gets no more memory than an image may take', needs('limits'), async () => {
    const attempt = `
      const taken = [];
      for (let count = 0; count < 40; count += 1) taken.push(Buffer.alloc(50_000_000, 1));
      return 'two gigabytes';`;
    const { found: could, ended } = await runHostileDecoder({ memory: attempt }, true);
    assert.ok(
      could.memory === undefined ? ended !== 0 : /allocation failed|ERR_MEMORY/.test(could.memory),
      could.memory,
    );
  });

  it(
    'has limits on processor time and on files, and is the first to go when memory is short',
    needs('limits'),
    async () => {
      const attempt = 'await new Promise((resolve) => process.stdin.once("end", resolve).resume());';
      const { startDecoder } = await import('../../src/decoder/decoder.ts');
      const program = {
        args: ['--eval', `(async () => { process.stdout.write('up'); ${attempt} })()`],
        folder: '/',
        reads: [],
      };
      const child = startDecoder(program, true);
      let output = '';
      child.stdout?.on('data', (bytes: Buffer) => {
        output += bytes;
      });
      await eventually(() => assert.match(output, /up/));
      const limits = readFileSync(`/proc/${child.pid}/limits`, 'utf8');
      assert.match(limits, /Max cpu time\s+300\s+300/);
      assert.match(limits, /Max core file size\s+0\s+0/);
      assert.match(limits, /Max file size\s+0\s+0/);
      const most = Number.parseInt(process.versions.node, 10) < 24 ? 800_000_000 : 1_340_000_000;
      assert.match(limits, new RegExp(`Max data size\\s+${most}\\s+${most}`));
      assert.match(limits, /Max address space\s+4000000000\s+4000000000/);
      assert.equal(readFileSync(`/proc/${child.pid}/oom_score_adj`, 'utf8').trim(), '1000');
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      assert.match(status, /NoNewPrivs:\s+1/);
      assert.match(status, /CapEff:\s+0+\n/);
      assert.match(status, /CapPrm:\s+0+\n/);
      child.stdin?.end();
    },
  );

  it('ends with its gateway, however that ends', needs('limits'), async () => {
    const start = new URL('../../src/decoder/decoder.ts', import.meta.url).href;
    const stubborn = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000);";
    const code = `
      import { startDecoder } from '${start}';
      const child = startDecoder({ args: ['--eval', ${JSON.stringify(stubborn)}], folder: '/', reads: [] }, true);
      child.stdout.once('data', () => console.log(child.pid));`;
    const gateway = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const decoder = await new Promise<number>((resolve) => gateway.stdout.once('data', (pid) => resolve(Number(pid))));
    assert.ok(existsSync(`/proc/${decoder}`));
    gateway.kill('SIGKILL');
    await eventually(() => assert.ok(!existsSync(`/proc/${decoder}`), 'the decoder runs on'));
  });
});

describe('a gateway', () => {
  it('logs at its start that images cannot be decoded if the decoder does not work there', async () => {
    const node = process.execPath;
    const errorsWith = async (program: string) => {
      const logged: string[] = [];
      const destination = { write: (line: string) => void logged.push(line) };
      const log = createLogger({ name: 'test', level: 'error', destination });
      const checker = new ImageChecker({ log, workers: 1 });
      process.execPath = program;
      try {
        await checker.start();
        await checker.tried;
        return logged.map((line) => JSON.parse(line).msg);
      } finally {
        process.execPath = node;
        checker.close();
      }
    };
    assert.deepEqual(await errorsWith('/bin/false'), ['images cannot be decoded on this machine']);
    assert.deepEqual(await errorsWith(node), []);
  });

  it('says which walls hold around its decoders, and decodes behind them', async () => {
    const gateway = await startGateway();
    try {
      const line = gateway.logged.map((each) => JSON.parse(each)).find(({ walls }) => walls !== undefined);
      assert.deepEqual(line?.walls, [...found]);
      const metrics = await (await fetch(`http://127.0.0.1:${gateway.app.opsPort}/metrics`)).text();
      for (const wall of neededWalls) {
        assert.match(metrics, new RegExp(`marina_decoder_walls\\{wall="${wall}"\\} ${found.has(wall) ? 1 : 0}`));
      }
    } finally {
      await gateway.stop();
    }
  });

  it('a decoder that requires all walls starts only where they hold', {
    skip: isWhole ? false : 'not offered here',
  }, async () => {
    const log = createLogger({ name: 'test', level: 'silent' });
    const checker = new ImageChecker({ log, workers: 1, walls: 'required' });
    await checker.start();
    for (const [file, mediaType] of [
      [await noisePng(), 'image/png'],
      [await noiseJpeg(), 'image/jpeg'],
    ] as const) {
      await checker.decode(checker.readHeaders(file, mediaType), 'partner');
    }
    checker.close();
  });
});
