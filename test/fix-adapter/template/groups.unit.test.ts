import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkGroups } from '../../../src/fix-adapter/template/groups.ts';

/** The error of fields: a number is a tag with no count; `453=2` a tag with one. */
function problem(...fields: readonly (number | string)[]): string | undefined {
  const placed = fields.map((field) => {
    const [tag = '', count] = String(field).split('=');
    return { tag: Number(tag), count: count === undefined ? undefined : Number(count) };
  });
  try {
    checkGroups(placed);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

describe('the repeating groups of a template', () => {
  const party = [448, 447, 452];

  it('a group has as many entries as its count says, each beginning with its first field', () => {
    assert.equal(problem(), undefined);
    assert.equal(problem('453=1', ...party), undefined);
    assert.equal(problem('453=2', ...party, ...party), undefined);
    assert.equal(problem('453=2', 448, 448), undefined);
    assert.match(
      problem('453=2', ...party) ?? '',
      /2 entries in NoPartyIDs \(453\); entry 2 does not begin with tag 448/,
    );
    assert.match(problem('453=1', 447, 452) ?? '', /entry 1 does not begin with tag 448/);
    assert.match(problem('453=1') ?? '', /entry 1 does not begin/);
    assert.match(
      problem('453=1', ...party, ...party) ?? '',
      /as many entries in NoPartyIDs \(453\) as its count says, 1/,
    );
  });

  it('the fields of an entry are in the order of FIX, each once, and any may be left out', () => {
    assert.equal(problem('453=1', 448, 452), undefined);
    assert.match(problem('453=1', 448, 452, 447) ?? '', /in the order 448, 447, 452, 802, each once/);
    assert.match(problem('453=1', 448, 447, 447) ?? '', /each once/);
  });

  it('a count is a number of 1 to 99 without a placeholder', () => {
    const many = (count: number) => problem(`453=${count}`, ...Array.from({ length: count }, () => 448));
    assert.deepEqual([many(1), many(99)], [undefined, undefined]);
    for (const wrong of ['453=0', '453=100', '453=-1', 453])
      assert.match(problem(wrong, 448) ?? '', /a count of 1 to 99 in NoPartyIDs/, String(wrong));
    assert.match(many(100) ?? '', /a count of 1 to 99/);
  });

  it('no tag is twice outside a group, nor a group twice', () => {
    assert.equal(problem(581, 528), undefined);
    assert.match(problem(581, 528, 581) ?? '', /tag 581 twice/);
    assert.match(problem('453=1', 448, 528, '453=1', 448) ?? '', /tag 453 twice/);
  });

  it('a member of a group stands in its group alone', () => {
    assert.match(problem(448) ?? '', /tag 448 in its repeating group, NoPartyIDs \(453\)/);
    assert.match(problem('453=1', 448, 528, 447) ?? '', /tag 447 in its repeating group/);
    assert.match(problem('232=1', 233, 456) ?? '', /NoSecurityAltID \(454\)/);
  });

  it('a group inside another belongs to its entry', () => {
    assert.equal(problem('453=2', 448, '802=2', 523, 803, 523, 448, 452), undefined);
    assert.equal(problem('78=1', 79, '539=1', 524, '804=1', 545, 805, 80), undefined);
    assert.match(problem('453=1', 448, '802=2', 523, 803) ?? '', /2 entries in NoPartySubIDs \(802\); entry 2/);
    assert.match(problem('453=1', 448, 802, 523) ?? '', /a count of 1 to 99 in NoPartySubIDs/);
    assert.match(problem('453=1', 448, '802=1', 523, 447) ?? '', /in the order 448, 447, 452, 802/);
  });

  it('groups follow each other, with other fields between them', () => {
    assert.equal(problem('453=1', 448, '454=1', 455, 456, 528), undefined);
    assert.equal(problem(528, '386=1', 336, 581, '232=1', 233), undefined);
  });
});
