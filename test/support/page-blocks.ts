import assert from 'node:assert/strict';

/** A fenced block of a page, or one command of it. */
export interface Block {
  /** Its first line, counted from 1, and its last. */
  readonly from: number;
  readonly to: number;
  readonly lines: readonly string[];
}

/** The blocks in one language that a reader pastes into a shell. */
export const shellLanguages = /^(sh|bash|shell|console)$/;

/** The blocks of a page in one of the languages. */
export function blocksOf(text: string, language: RegExp): Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const opened = /^( *)```(\w+)$/.exec(lines[at] ?? '');
    if (opened === null) continue;
    const [, indent = '', word = ''] = opened;
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    assert.ok(end > at, `line ${at + 1} opens a block that is not closed`);
    if (language.test(word)) {
      blocks.push({ from: at + 2, to: end, lines: lines.slice(at + 1, end).map((line) => line.slice(indent.length)) });
    }
    at = end;
  }
  return blocks;
}

/** A block's commands: each a line, with those it goes on in. */
export function commandsIn({ from, lines }: Block): Block[] {
  const commands: Block[] = [];
  for (let at = 0, end = 0; at < lines.length; at = end + 1) {
    end = at;
    while (lines[end]?.endsWith('\\')) end += 1;
    commands.push({ from: from + at, to: from + end, lines: lines.slice(at, end + 1) });
  }
  return commands;
}
