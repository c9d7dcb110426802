import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { secretOf, sign } from '../../src/gateway/delivery/webhooks/attempt/signature.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';

const snippets = join(import.meta.dirname, '../../src/site/snippets');
const has = (program: string) => spawnSync(program, ['--help']).error === undefined;

/** Debian's name of php-fpm has PHP's version. */
const fpmProgram = `/usr/sbin/${readdirSync('/usr/sbin').find((name) => name.startsWith('php-fpm')) ?? 'php-fpm'}`;
const key = randomBytes(32);
const now = Math.floor(Date.now() / 1_000);
const body = '{"id":"msg_1","version":100000000000000007}';

interface Webhook {
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function webhook(changes: { secret?: string; headers?: Record<string, string>; body?: string; seconds?: number } = {}) {
  const seconds = changes.seconds ?? now;
  const signature = sign({ id: 'msg_1', timestampSeconds: seconds, body: Buffer.from(body) }, [key]);
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(seconds), 'webhook-signature': signature };
  return {
    secret: changes.secret ?? secretOf(key),
    headers: { ...headers, ...changes.headers },
    body: changes.body ?? body,
  };
}

const { headers: good } = webhook();
/** As servers join two headers of one name. */
const joined = `v1,AAAA,${good['webhook-signature']}, v1,BBBB`;
const nobody = sign({ id: 'msg_1', timestampSeconds: now, body: Buffer.from(body) }, [Buffer.alloc(0)]);
const tries: Readonly<Record<string, [Webhook, boolean]>> = {
  'a webhook of ours': [webhook(), true],
  'one of two signatures': [
    webhook({ headers: { 'webhook-signature': `v1,AAAA ${good['webhook-signature']}` } }),
    true,
  ],
  'another body': [webhook({ body: `${body} ` }), false],
  'another id': [webhook({ headers: { 'webhook-id': 'msg_2' } }), false],
  'a time of ten minutes ago': [webhook({ seconds: now - 600 }), false],
  'a time that is ten minutes ahead': [webhook({ seconds: now + 600 }), false],
  'a time that is none': [webhook({ headers: { 'webhook-timestamp': 'soon' } }), false],
  'no signature': [webhook({ headers: { 'webhook-signature': '' } }), false],
  'an empty secret': [webhook({ secret: 'whsec_', headers: { 'webhook-signature': nobody } }), false],
};

const twoHeaders: [Webhook, boolean] = [webhook({ headers: { 'webhook-signature': joined } }), true];

/** The variables in which CGI has a request. */
function variables({ secret, headers, body }: Webhook): Record<string, string> {
  const named = Object.entries(headers).map(([name, value]) => [
    `HTTP_${name.toUpperCase().replaceAll('-', '_')}`,
    value,
  ]);
  return {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    GATEWAY_INTERFACE: 'CGI/1.1',
    SERVER_PROTOCOL: 'HTTP/1.1',
    REQUEST_METHOD: 'POST',
    REDIRECT_STATUS: '200',
    CONTENT_TYPE: 'application/json',
    CONTENT_LENGTH: String(Buffer.byteLength(body)),
    WEBHOOK_SECRET: secret,
    ...ofTheProcess,
    ...Object.fromEntries(named),
  };
}

/** Of the process. A server copies them into the variables of each request. */
const ofTheProcess = { WEBHOOK_ID: 'billing', WEBHOOK_TIMESTAMP: '1', WEBHOOK_SIGNATURE: 'v1,AAAA' };

interface Way {
  readonly name: string;
  readonly needs: readonly string[];
  /** Makes what is run, in a folder. */
  readonly make: (folder: string) => void;
  /** The program and its arguments, for a webhook. */
  readonly command: (folder: string, webhook: Webhook) => readonly string[];
}

function compile(folder: string, ...command: string[]): void {
  const [program = '', ...args] = command;
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
}

const php = `<?php
require 'verify.php';
try {
    $headers = array_key_exists('REQUEST_METHOD', $_SERVER) ? $_SERVER : json_decode($argv[1], true);
    $body = file_get_contents(array_key_exists('REQUEST_METHOD', $_SERVER) ? 'php://input' : 'php://stdin');
    verify(getenv('WEBHOOK_SECRET') ?: $_SERVER['WEBHOOK_SECRET'], $headers, $body);
    echo "\\nours\\n";
} catch (RuntimeException $error) {
    echo "\\nrefused\\n";
}
`;
const withPhp = (folder: string) => {
  copyFileSync(join(snippets, 'verify.php'), join(folder, 'verify.php'));
  writeFileSync(join(folder, 'endpoint.php'), php);
};
/** As frameworks have headers: PSR-7 with lists, getallheaders() with capitals. */
const asLists = ({ headers }: Webhook) =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name.replaceAll(/\b[a-z]/g, (each) => each.toUpperCase()),
        [value],
      ]),
    ),
  );

const ways: readonly Way[] = [
  {
    name: 'PHP under CGI',
    needs: ['php-cgi'],
    make: withPhp,
    command: (folder) => ['env', `SCRIPT_FILENAME=${join(folder, 'endpoint.php')}`, 'php-cgi'],
  },
  {
    name: 'PHP under php-fpm',
    needs: [fpmProgram, 'cgi-fcgi'],
    make(folder) {
      withPhp(folder);
      const pool = `[global]\nerror_log = ${folder}/fpm.log\n[www]\nlisten = ${folder}/fpm.sock\npm = static\npm.max_children = 1\n`;
      writeFileSync(
        join(folder, 'fpm.conf'),
        `${pool}${process.getuid?.() === 0 ? 'user = root\ngroup = root\n' : ''}`,
      );
      const fpm = spawn(fpmProgram, ['-n', '-F', '-R', '-y', join(folder, 'fpm.conf')], {
        stdio: 'ignore',
      });
      process.once('exit', () => fpm.kill());
      fpm.unref();
    },
    command: (folder) => [
      'env',
      `SCRIPT_FILENAME=${join(folder, 'endpoint.php')}`,
      'cgi-fcgi',
      '-bind',
      '-connect',
      join(folder, 'fpm.sock'),
    ],
  },
  {
    name: 'PHP with the headers of a framework',
    needs: ['php'],
    make: withPhp,
    command: (_, each) => ['env', '-u', 'REQUEST_METHOD', 'php', 'endpoint.php', asLists(each)],
  },
  {
    name: 'Python under CGI',
    needs: ['python3'],
    make(folder) {
      copyFileSync(join(snippets, 'verify.py'), join(folder, 'verify.py'));
      const program = `import os, sys, verify
try:
    verify.verify(os.environ["WEBHOOK_SECRET"], os.environ, sys.stdin.buffer.read())
    print("\\nours")
except ValueError:
    print("\\nrefused")
`;
      writeFileSync(join(folder, 'endpoint.py'), program);
    },
    command: () => ['python3', 'endpoint.py'],
  },
  {
    name: 'Python under ASGI',
    needs: ['python3'],
    make(folder) {
      copyFileSync(join(snippets, 'verify.py'), join(folder, 'verify.py'));
      const program = `import json, os, sys, verify
headers = [(name.encode(), value.encode()) for name, value in json.loads(sys.argv[1])]
try:
    verify.verify(os.environ["WEBHOOK_SECRET"], headers, sys.stdin.buffer.read())
    print("\\nours")
except ValueError:
    print("\\nrefused")
`;
      writeFileSync(join(folder, 'endpoint.py'), program);
    },
    command: (_, { headers }) => ['python3', 'endpoint.py', JSON.stringify(Object.entries(headers))],
  },
  {
    name: 'Go under CGI',
    needs: ['go'],
    make(folder) {
      mkdirSync(join(folder, 'webhooks'));
      copyFileSync(join(snippets, 'verify.go'), join(folder, 'webhooks', 'verify.go'));
      writeFileSync(join(folder, 'go.mod'), 'module endpoint\n\ngo 1.19\n');
      const program = `package main

import (
	"endpoint/webhooks"
	"fmt"
	"io"
	"net/http/cgi"
	"os"
)

func main() {
	request, err := cgi.Request()
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(err)
	}
	if webhooks.Verify(os.Getenv("WEBHOOK_SECRET"), request.Header, body) != nil {
		fmt.Println("\\nrefused")
		return
	}
	fmt.Println("\\nours")
}
`;
      writeFileSync(join(folder, 'main.go'), program);
      compile(folder, 'go', 'build', '-o', 'endpoint', '.');
    },
    command: (folder) => ['env', 'HTTP_HOST=127.0.0.1', join(folder, 'endpoint')],
  },
  {
    name: 'Java',
    needs: ['java', 'javac'],
    make(folder) {
      const program = `import java.security.GeneralSecurityException;

public final class Endpoint {
    public static void main(String[] args) throws Exception {
        byte[] body = System.in.readAllBytes();
        try {
            Verify.verify(System.getenv("WEBHOOK_SECRET"), name -> System.getenv("HTTP_" + name.toUpperCase().replace('-', '_')), body);
            System.out.println("\\nours");
        } catch (GeneralSecurityException error) {
            System.out.println("\\nrefused");
        }
    }
}
`;
      writeFileSync(join(folder, 'Endpoint.java'), program);
      compile(folder, 'javac', '-d', folder, join(folder, 'Endpoint.java'), join(snippets, 'Verify.java'));
    },
    command: (folder) => ['java', '-cp', folder, 'Endpoint'],
  },
  {
    name: 'C#',
    needs: ['mcs', 'mono'],
    make(folder) {
      const program = `using System;
using System.IO;
using System.Security.Cryptography;

public static class Endpoint
{
    public static void Main()
    {
        var body = new MemoryStream();
        Console.OpenStandardInput().CopyTo(body);
        Func<string, string> header = name => Environment.GetEnvironmentVariable("HTTP_" + name.ToUpper().Replace('-', '_'));
        try
        {
            Webhooks.Verify(Environment.GetEnvironmentVariable("WEBHOOK_SECRET"), header, body.ToArray());
            Console.WriteLine("\\nours");
        }
        catch (CryptographicException)
        {
            Console.WriteLine("\\nrefused");
        }
    }
}
`;
      writeFileSync(join(folder, 'Endpoint.cs'), program);
      compile(folder, 'mcs', '-out:endpoint.exe', join(folder, 'Endpoint.cs'), join(snippets, 'Verify.cs'));
    },
    command: (folder) => ['mono', join(folder, 'endpoint.exe')],
  },
];

for (const { name, needs, make, command } of ways) {
  const missing = needs.filter((program) => !has(program));
  describe(`the verifier of webhooks in ${name}`, { skip: missing.length > 0 && `${missing} is not here` }, () => {
    let folder: string;
    before(async () => {
      folder = temporaryFolder();
      sharedKeeper().removeAtEnd(folder);
      make(folder);
      if (name.endsWith('fpm')) await eventually(() => assert.ok(existsSync(join(folder, 'fpm.sock'))));
    });

    for (const [what, [sent, isOurs]] of Object.entries({ ...tries, 'signatures of two headers': twoHeaders })) {
      it(`${isOurs ? 'accepts' : 'refuses'} ${what}`, () => {
        const [program = '', ...args] = command(folder, sent);
        const ran = spawnSync(program, args, { cwd: folder, env: variables(sent), input: sent.body, encoding: 'utf8' });
        assert.equal(ran.stdout.trim().split('\n').at(-1), isOurs ? 'ours' : 'refused', ran.stdout + ran.stderr);
      });
    }
  });
}
