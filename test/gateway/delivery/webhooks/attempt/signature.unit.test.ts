import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import {
  makeSecret,
  parseSecret,
  secretOf,
  sign,
} from '../../../../../src/gateway/delivery/webhooks/attempt/signature.ts';
import { sharedKeeper } from '../../../../../src/sandbox/keeper.ts';
import { temporaryFolder } from '../../../../support/folders.ts';
import { fc } from '../../../../support/properties.ts';

const hasProgram = (program: string) => spawnSync(program, ['--help']).error === undefined;
const hasPython = spawnSync('python3', ['--version']).status === 0;

/** Signs with an empty key and the time of now, and expects a refusal for the secret. */
const goTest = `package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestEmptySecret(t *testing.T) {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte("msg_1." + timestamp + ".{}"))
	header := http.Header{}
	header.Set("webhook-id", "msg_1")
	header.Set("webhook-timestamp", timestamp)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, secret := range []string{"", "whsec_"} {
		err := Verify(secret, header, []byte("{}"))
		if err == nil || err.Error() != "there is no secret" {
			t.Fatalf("%q: %v", secret, err)
		}
	}
}

func TestSeveralLines(t *testing.T) {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte("msg_1." + timestamp + ".{}"))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	other := base64.StdEncoding.EncodeToString(make([]byte, 32))
	right := [][]string{{"v1," + other, "v1," + signature}, {"v1," + signature, "v1," + other}, {"v1," + other + ",v1," + signature},
		{"v1," + signature + ", v1," + other}, {"v1a,x v1," + signature}}
	wrong := [][]string{{}, {""}, {"v1"}, {"v1,"}, {"v1," + other, "v2," + signature}, {signature}, {"v1 " + "v1," + other}}
	for _, lines := range append(right, wrong...) {
		header := http.Header{}
		header.Set("webhook-id", "msg_1")
		header.Set("webhook-timestamp", timestamp)
		for _, line := range lines {
			header.Add("webhook-signature", line)
		}
		err := Verify("whsec_"+base64.StdEncoding.EncodeToString([]byte("key")), header, []byte("{}"))
		isRight := len(lines) > 0 && strings.Contains(strings.Join(lines, " "), "v1,"+signature)
		if isRight != (err == nil) {
			t.Fatalf("%q: %v", lines, err)
		}
	}
}
`;

function keyOf(secret: string): Buffer {
  const key = parseSecret(secret);
  assert.ok(key, `${secret} is a secret`);
  return key;
}

describe('a webhook signature', () => {
  it("is the reference vector's", () => {
    const signed = {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestampSeconds: 1614265330,
      body: Buffer.from('{"test": 2432232314}'),
    };
    const signature = sign(signed, [keyOf('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')]);
    assert.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });

  const verifiers = { standardwebhooks: StandardWebhook, svix: SvixWebhook };
  for (const [name, Verifier] of Object.entries(verifiers)) {
    it(`is accepted by ${name}, whatever the body, by the new secret and by the old`, () => {
      fc.assert(
        fc.property(fc.json(), fc.boolean(), (json, isRotating) => {
          const secrets = [makeSecret(), ...(isRotating ? [makeSecret()] : [])];
          const id = `msg_${randomBytes(12).toString('hex')}`;
          const timestampSeconds = Math.floor(Date.now() / 1_000);
          const signature = sign({ id, timestampSeconds, body: Buffer.from(json) }, secrets.map(keyOf));
          const headers = {
            'webhook-id': id,
            'webhook-timestamp': String(timestampSeconds),
            'webhook-signature': signature,
          };
          for (const secret of secrets) assert.deepEqual(new Verifier(secret).verify(json, headers), JSON.parse(json));
          assert.throws(() => new Verifier(secrets[0] ?? '').verify(`${json} `, headers), /signature/i);
          assert.throws(() => new Verifier(makeSecret()).verify(json, headers), /signature/i);
        }),
      );
    });
  }

  it('has an entry for each key, in their order', () => {
    const keys = [randomBytes(32), randomBytes(32)];
    const signed = { id: 'msg_1', timestampSeconds: 1, body: Buffer.from('{}') };
    assert.equal(sign(signed, keys), keys.map((key) => sign(signed, [key])).join(' '));
  });

  it('is over the bytes as they are, also where they are no text', () => {
    const keys = [randomBytes(32)];
    const signatures = [Buffer.from([0xff]), Buffer.from([0xfe])].map((body) =>
      sign({ id: 'msg_1', timestampSeconds: 1, body }, keys),
    );
    assert.notEqual(signatures[0], signatures[1]);
  });

  it('is never left out', () => {
    assert.throws(() => sign({ id: 'msg_1', timestampSeconds: 1, body: Buffer.from('{}') }, []), /unsigned/);
  });
});

describe('a signing secret', () => {
  it('is made of 256 bits of chance', () => {
    const secrets = new Set(Array.from({ length: 100 }, makeSecret));
    assert.equal(secrets.size, 100);
    for (const secret of secrets) assert.equal(keyOf(secret).length, 32);
  });

  it('may have 24 to 64 bytes', () => {
    for (const length of [24, 64]) assert.equal(keyOf(secretOf(randomBytes(length))).length, length);
    for (const length of [0, 23, 65]) assert.equal(parseSecret(secretOf(randomBytes(length))), undefined);
  });

  const text = secretOf(Buffer.alloc(32, 7));
  const mistakes = {
    'without its prefix': text.slice('whsec_'.length),
    'with another prefix': text.replace('whsec_', 'whpk_'),
    'with a letter lost': text.replace('B', ''),
    'with a space': `${text} `,
    'with what is no base64': text.replace('B', '*'),
    'in the alphabet of URLs': secretOf(Buffer.alloc(32, 0xff)).replaceAll('/', '_'),
    'without its padding': text.replaceAll('=', ''),
  };
  for (const [how, mistake] of Object.entries(mistakes)) {
    it(`is refused ${how}`, () => assert.equal(parseSecret(mistake), undefined));
  }
});

describe('what the pages show to verify an event with', () => {
  const snippets = join(import.meta.dirname, '../../../../../src/site/snippets');
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const now = 1_614_265_330;
  const body = Buffer.from('{"test": 2432232314}');
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const headers = (changes: Record<string, string> = {}) => ({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': String(now),
    'webhook-signature': signature,
    ...changes,
  });
  /** The tries, and whether each is ours. */
  const tries: [string, Record<string, string>, Buffer, number, boolean][] = [
    ['the reference vector', headers(), body, now, true],
    [
      'one of two signatures',
      headers({ 'webhook-signature': `v1,${signature.slice(5)}AA== ${signature}` }),
      body,
      now,
      true,
    ],
    ['another body', headers(), Buffer.from('{"test":2432232314}'), now, false],
    ['another id', headers({ 'webhook-id': 'msg_1' }), body, now, false],
    [
      'another version of the scheme',
      headers({ 'webhook-signature': signature.replace('v1', 'v2') }),
      body,
      now,
      false,
    ],
    ['a clock five minutes behind', headers(), body, now - 300, true],
    ['a clock more than five minutes ahead', headers(), body, now + 301, false],
    ['a time that is none', headers({ 'webhook-timestamp': 'soon' }), body, now, false],
  ];

  for (const [what, sent, bytes, clock, isOurs] of tries) {
    it(`the JavaScript code ${isOurs ? 'accepts' : 'refuses'} ${what}`, async () => {
      const { verify } = await import(join(snippets, 'verify.mjs'));
      if (isOurs) assert.deepEqual(verify(secret, sent, bytes, clock), { test: 2432232314 });
      else assert.throws(() => verify(secret, sent, bytes, clock));
    });

    it(`the Python code ${isOurs ? 'accepts' : 'refuses'} ${what}`, {
      skip: !hasPython && 'there is no python3 here',
    }, () => {
      const program =
        'import json,sys,verify; a=json.load(sys.stdin); print(verify.verify(a[0],a[1],a[2].encode(),a[3])["test"])';
      const { status, stdout } = spawnSync('python3', ['-B', '-c', program], {
        cwd: snippets,
        input: JSON.stringify([secret, sent, bytes.toString(), clock]),
        encoding: 'utf8',
      });
      assert.deepEqual([status, stdout.trim()], isOurs ? [0, '2432232314'] : [1, '']);
    });
  }

  it('the JavaScript code reads the headers and the body of every kind of server', async () => {
    const { verify } = await import(join(snippets, 'verify.mjs'));
    const entries = Object.entries(headers());
    const named = (change: (name: string) => string) =>
      Object.fromEntries(entries.map(([name, value]) => [change(name), value]));
    const capitals = named((name) => name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase()));
    const other = `v1,${Buffer.alloc(32).toString('base64')}`;
    const lines = new Headers(headers({ 'webhook-signature': other }));
    lines.append('webhook-signature', signature);
    const kinds: Record<string, unknown> = {
      ...{ 'names in small letters': headers(), 'names with capitals': capitals },
      'names in capitals': named((name) => name.toUpperCase()),
      ...{ 'a Headers': new Headers(headers()), 'a Headers of two lines': lines },
      ...{ 'a Map': new Map(entries), 'an object without a prototype': Object.assign(Object.create(null), headers()) },
      'lists of values': Object.fromEntries(entries.map(([name, value]) => [name, [value]])),
      'lists of two signatures': headers({ 'webhook-signature': [other, signature] as unknown as string }),
      'signatures joined with a comma': headers({ 'webhook-signature': `${other},${signature},${other}` }),
      'signatures joined with a comma and a space': headers({ 'webhook-signature': `${other}, ${signature}` }),
      'another scheme before': headers({ 'webhook-signature': `v1a,${signature.slice(3)} ${signature}` }),
    };
    for (const [kind, each] of Object.entries(kinds)) {
      assert.deepEqual(verify(secret, each, body, now), { test: 2432232314 }, kind);
    }
    const inside = Buffer.concat([Buffer.alloc(3), body, Buffer.alloc(2)]).subarray(3, 3 + body.length);
    const own = new Uint8Array(body);
    for (const bytes of [body, inside, own, own.buffer, new DataView(own.buffer), String(body)]) {
      assert.deepEqual(verify(secret, headers(), bytes, now), { test: 2432232314 });
    }
    for (const parsed of [{ test: 2432232314 }, [1], null, undefined, 7]) {
      assert.throws(() => verify(secret, headers(), parsed, now), /raw bytes/);
    }
    for (const wrong of [{}, new Headers(), headers({ 'webhook-signature': other }), new Map()]) {
      assert.throws(() => verify(secret, wrong, body, now), /too old|no signature/);
    }
    const oddSignatures = [`xv1,${signature.slice(3)}`, `v1a,${signature.slice(3)}`, signature.slice(3), 'v1,', 'v1'];
    for (const odd of oddSignatures) {
      assert.throws(() => verify(secret, headers({ 'webhook-signature': odd }), body, now), /no signature/, odd);
    }
  });

  /** The body, signed as anybody can who guesses that the secret is empty. */
  const forged = headers({
    'webhook-signature': sign({ id: 'msg_1', timestampSeconds: now, body }, [Buffer.alloc(0)]),
  });
  const signedByNobody = { ...forged, 'webhook-id': 'msg_1' };
  for (const empty of ['', 'whsec_']) {
    const named = empty === '' ? 'an empty secret' : 'a secret of its prefix alone';

    it(`the JavaScript code refuses ${named}, with which anybody can sign`, async () => {
      const { verify } = await import(join(snippets, 'verify.mjs'));
      assert.throws(() => verify(empty, signedByNobody, body, now), /there is no secret/);
    });

    it(`the Python code refuses ${named}, with which anybody can sign`, {
      skip: !hasPython && 'there is no python3',
    }, () => {
      const program = 'import json,sys,verify; a=json.load(sys.stdin); verify.verify(a[0],a[1],a[2].encode(),a[3])';
      const input = JSON.stringify([empty, signedByNobody, body.toString(), now]);
      const { status, stderr } = spawnSync('python3', ['-B', '-c', program], {
        cwd: snippets,
        input,
        encoding: 'utf8',
      });
      assert.equal(status, 1);
      assert.match(stderr, /there is no secret/);
    });

    it(`the PHP code refuses ${named}, with which anybody can sign`, {
      skip: !hasProgram('php') && 'there is no php',
    }, () => {
      const program =
        "require 'verify.php'; $a = json_decode(stream_get_contents(STDIN), true); verify($a[0], $a[1], $a[2]);";
      const seconds = String(Math.floor(Date.now() / 1_000));
      const sent = { ...signedByNobody, 'webhook-timestamp': seconds };
      const signature = sign({ id: 'msg_1', timestampSeconds: Number(seconds), body }, [Buffer.alloc(0)]);
      const input = JSON.stringify([empty, { ...sent, 'webhook-signature': signature }, body.toString()]);
      const { status, stdout, stderr } = spawnSync('php', ['-r', program], { cwd: snippets, input, encoding: 'utf8' });
      assert.equal(status, 255);
      assert.match(stdout + stderr, /there is no secret/);
    });
  }

  it('the Go code refuses an empty secret, with which anybody can sign, and reads every line of signatures', {
    skip: !hasProgram('go') && 'there is no go',
  }, () => {
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    writeFileSync(join(folder, 'go.mod'), 'module webhooks\n\ngo 1.19\n');
    copyFileSync(join(snippets, 'verify.go'), join(folder, 'verify.go'));
    writeFileSync(join(folder, 'verify_test.go'), goTest);
    const { status, stdout, stderr } = spawnSync('go', ['test', './...'], { cwd: folder, encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  });
});
