import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AnswerHead } from '../../src/webhooks/answer-head.ts';

const strict = (head: string) => new AnswerHead().add(Buffer.from(head, 'latin1'))?.toString('latin1');

describe('the head of an answer to a webhook', () => {
  it('has the values of folded headers as one', () => {
    const folded = 'HTTP/1.1 200 OK\r\nx: a\r\n b\r\nConnection: keep-alive,\r\n\t x\r\n  close\r\n\r\n';
    assert.equal(strict(folded), 'HTTP/1.1 200 -\r\nconnection: keep-alive, x close\r\n\r\n');
    assert.equal(strict('HTTP/1.1 200 OK\n folded into nothing\n\n'), 'HTTP/1.1 200 -\r\n\r\n');
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
