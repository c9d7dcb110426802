import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Sandbox } from '../../../src/sandbox/sandbox-file.ts';
import { onlyReads, PageCalls } from '../page-acts.ts';
import { blocksOf, shellLanguages } from '../page-blocks.ts';
import type { PastedBlock } from './paste.ts';

/** More entries than a block of a page makes. */
const newest = 20;

interface Entry {
  readonly id: string;
  readonly operator?: string;
  readonly action: string;
}

/** Compares what the blocks of a page look like with the entries that they made in the audit. */
export class AuditOfPages {
  private constructor(
    /** Shows the newest entries; for the end of each block. */
    readonly command: string,
    private readonly calls: PageCalls,
    private lastId: bigint,
  ) {}

  static async start(
    { admin_address: address, operator_token: token }: Sandbox,
    folder: string,
    env: NodeJS.ProcessEnv,
  ) {
    const command = join(folder, 'newest-of-the-audit');
    const request = JSON.stringify({ limit: newest });
    const call = `grpcurl -plaintext -H 'Authorization: Bearer ${token}' -d '${request}' ${address} marina.admin.v1.Audit/ListEntries`;
    writeFileSync(command, `#!/bin/sh\n${call}\n`);
    chmodSync(command, 0o700);
    const { stdout } = await promisify(execFile)(command, { env });
    return new AuditOfPages(`'${command}'`, await PageCalls.load(), BigInt(entriesIn(stdout)[0]?.id ?? 0));
  }

  /** A block that looks has changed nothing, and one that acts has made its one call at most. */
  check(page: string, pasted: readonly PastedBlock[]): void {
    const found = this.calls.ofPage(blocksOf(readFileSync(page, 'utf8'), shellLanguages));
    for (const [index, { line, after }] of pasted.entries()) {
      assert.notEqual(after, '', `${page}:${line} ended without a look at the audit`);
      const entries = entriesIn(after);
      const made = entries.filter(({ id }) => BigInt(id) > this.lastId);
      assert.ok(made.length < newest, `${page}:${line} made too many entries`);
      this.lastId = BigInt(entries[0]?.id ?? this.lastId);
      const changes = made
        .filter(({ operator }) => operator !== undefined)
        .map(({ action }) => action.replace('.', '/'));
      const known = changes.filter((action) => {
        const method = this.calls.method(action);
        return method === undefined || !onlyReads(method);
      });
      const acts = found[index]?.acts ?? [];
      assert.ok(known.length <= 1, `${page}:${line} changed several things: ${known.join(', ')}`);
      assert.ok(
        known.every((action) => acts.includes(action)),
        `${page}:${line} looks, but did ${known.join(', ')}`,
      );
    }
  }
}

function entriesIn(answer: string): readonly Entry[] {
  return (JSON.parse(answer) as { entries?: readonly Entry[] }).entries ?? [];
}
