import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AnswerHead } from '../../../../../src/gateway/delivery/webhooks/attempt/answer-head.ts';

const strict = (head: string) => new AnswerHead().add(Buffer.from(head, 'latin1'))?.toString('latin1');

describe('the head of an answer to a webhook', () => {
  it('has the values of folded headers as one', () => {
    const folded = 'HTTP/1.1 200 OK\r\nx: a\r\n b\r\nConnection: keep-alive,\r\n\t x\r\n  close\r\n\r\n';
    assert.equal(strict(folded), 'HTTP/1.1 200 -\r\nconnection: keep-alive, x close\r\n\r\n');
    assert.equal(strict('HTTP/1.1 200 OK\n folded into nothing\n\n'), 'HTTP/1.1 200 -\r\n\r\n');
  });

  it('is the status alone, and closes the connection, if nobody can tell where the answer ends', () => {
    const alone = 'HTTP/1.1 200 -\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';
    for (const value of ['', 'x', '-1', '2, x', '2 2', '2,', '+2', '0x2', '1'.repeat(16), '2\xe9']) {
      assert.equal(strict(`HTTP/1.1 200 OK\r\nContent-Length: ${value}\r\n\r\nok`), alone, value);
    }
    for (const value of ['', 'gzip', 'identity', 'chunked, gzip', 'xchunked', 'chunk\xe9d', '\xe9']) {
      const head = `HTTP/1.1 200 OK\r\nTransfer-Encoding: ${value}\r\nContent-Length: 2\r\n\r\nok`;
      assert.equal(strict(head), alone, value);
    }
  });

  it('has the length, and closes the connection, if it cannot be read whether the connection stays open', () => {
    const closed = 'HTTP/1.1 200 -\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok';
    for (const header of [
      'Connection: clos\xe9',
      'Keep-Alive: timeout=\x015',
      'Connection: keep-alive\nKeep-Alive: \xff',
    ]) {
      assert.equal(strict(`HTTP/1.1 200 OK\nContent-Length: 2\n${header}\n\nok`), closed, header);
    }
  });

  it('has chunks if they are the last coding, whatever their name’s case, and no length beside them', () => {
    const chunked = 'HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n';
    assert.equal(strict('HTTP/1.1 200 OK\nTransfer-Encoding: gzip, Chunked\n\n0'), `${chunked}\r\n0`);
    const both = 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: x\n\n0';
    assert.equal(strict(both), `${chunked}connection: close\r\n\r\n0`);
  });

  it('is none if two lengths differ', () => {
    for (const value of ['2\r\nContent-Length: 3', '2, 3', `${'1'.repeat(16)}, 2`]) {
      assert.throws(() => strict(`HTTP/1.1 200 OK\r\nContent-Length: ${value}\r\n\r\nok`), /differ/, value);
    }
    assert.match(strict('HTTP/1.1 200 OK\r\nContent-Length: 2, 02\r\n\r\nok') ?? '', /content-length: 2\r/);
  });

  it('costs no more for each folded line than for another line', () => {
    const head = `HTTP/1.1 200 OK\r\nconnection:${'\n a'.repeat(21_000)}\n\n`;
    strict(head);
    const before = process.cpuUsage();
    assert.ok(strict(head));
    // 250 ms if each folded line is joined to all before it.
    assert.ok(process.cpuUsage(before).user < 100_000);
  });
});
