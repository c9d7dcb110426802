import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Row } from './report.ts';
import { resultsFolder } from './results.ts';

/** The figures of a call or a job with large tables against small ones. */
export interface Growth {
  readonly name: string;
  readonly rows: readonly Row[];
}

/** The marks of the picture: each shows how many times longer a call takes with large tables. */
const marks = [
  {
    label: 'CPU of the gateway',
    shape: circle,
    colour: 'cpu',
    of: (rows: readonly Row[]) => middle(rows, 'CPU of gateway'),
  },
  { label: 'rows read', shape: square, colour: 'rows', of: (rows: readonly Row[]) => middle(rows, 'rows read') },
  {
    label: 'time',
    shape: diamond,
    colour: 'time',
    of: (rows: readonly Row[]) => {
      const throughput = middle(rows, 'throughput');
      return throughput === undefined ? undefined : 1 / throughput;
    },
  },
] as const;

const [width, nameWidth, textWidth, rowHeight, headHeight] = [960, 300, 190, 22, 74];
/**
 * Ratios at the ends of the axis, which is logarithmic. A ratio beyond them is drawn at the end; its figure is in the
 * text.
 */
const [leastRatio, mostRatio] = [0.5, 4];
const most = 1.2;

/** Draws how much more each call takes with large tables, and returns the file's name. */
export function drawGrowth(grown: readonly Growth[], large: number, small: number): string {
  const height = headHeight + grown.length * rowHeight + 14;
  const top = headHeight - 12;
  const line = (ratio: number, colour: string) =>
    `<line class="${colour}" x1="${x(ratio)}" x2="${x(ratio)}" y1="${top}" y2="${height - 10}"/>`;
  const labels = [0.5, 1, most, 2, 4].map((ratio) => text(x(ratio), top - 6, `${ratio}×`, 'small', 'middle'));
  const legend = marks.map(({ label, shape, colour }, index) => {
    const at = nameWidth + index * 150;
    return shape(at, 36, colour) + text(at + 10, 40, label, 'small');
  });
  const heads = ['CPU', 'rows', 'time'].map((head, column) => text(columnAt(column), top - 6, head, 'small', 'end'));
  const rows = grown.map(({ name, rows: measured }, index) => {
    const y = headHeight + index * rowHeight + rowHeight / 2 - 4;
    const drawn = marks.map(({ shape, colour, of }) => {
      const ratio = of(measured);
      return ratio === undefined ? '' : shape(x(ratio), y, colour);
    });
    const isFailed = measured.some(({ what }) => what === 'failed');
    const figures = marks.map(({ of }, column) => text(columnAt(column), y + 4, figureOf(of(measured)), '', 'end'));
    return (
      text(nameWidth - 24, y + 4, name, '', 'end') +
      `<line class="faint" x1="${nameWidth - 12}" x2="${width - textWidth}" y1="${y}" y2="${y}"/>` +
      drawn.join('') +
      (isFailed ? text(width - 16, y + 4, 'failed', '', 'end') : figures.join(''))
    );
  });
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"
  aria-label="What each call takes with ${count(large)} orders, as a multiple of what it takes with ${count(small)}">
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328; font-variant-numeric: tabular-nums }
  .small { font-size: 12px; fill: #59636e } .title { font-weight: 600; font-size: 14px }
  .ground { fill: #fff } .band { fill: #1a7f37; opacity: .1 } .faint { stroke: #d1d9e0 } .one { stroke: #59636e } .bound { stroke: #1a7f37 }
  .cpu { fill: #0969da } .rows { fill: #bc4c00 } .time { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .small { fill: #9198a1 } .ground { fill: #0d1117 } .faint { stroke: #3d444d } .one { stroke: #9198a1 }
    .band { fill: #3fb950; opacity: .15 } .bound { stroke: #3fb950 }
    .cpu { fill: #4493f8 } .rows { fill: #f0883e } .time { fill: #ab7df8 }
  }
</style>
<rect class="ground" width="${width}" height="${height}"/>
${text(16, 20, `What a call takes with ${count(large)} orders, as a multiple of what it takes with ${count(small)}`, 'title')}
${legend.join('')}${heads.join('')}
<rect class="band" x="${x(leastRatio)}" y="${top}" width="${x(most) - x(leastRatio)}" height="${height - 10 - top}"/>
${line(1, 'one')}${line(most, 'bound')}${labels.join('')}
${rows.join('\n')}
</svg>
`;
  const path = join(resultsFolder, 'growth.svg');
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(path, picture);
  return path;
}

function middle(rows: readonly Row[], what: string): number | undefined {
  return rows.find((row) => row.what === what)?.measured?.ratios.median;
}

/** Where the figures of a column end. */
function columnAt(column: number): number {
  return width - 16 - (marks.length - 1 - column) * 56;
}

function figureOf(ratio: number | undefined): string {
  return ratio === undefined ? '–' : ratio.toFixed(ratio < 10 ? 2 : 0);
}

function x(ratio: number): number {
  const inside = Math.min(Math.max(ratio, leastRatio), mostRatio);
  const share = Math.log(inside / leastRatio) / Math.log(mostRatio / leastRatio);
  return Math.round(nameWidth + share * (width - textWidth - nameWidth));
}

function count(orders: number): string {
  return orders.toLocaleString('en');
}

function text(x: number, y: number, content: string, style: string, anchor = 'start'): string {
  const safe = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text class="${style}" x="${x}" y="${y}" text-anchor="${anchor}">${safe}</text>`;
}

function circle(x: number, y: number, colour: string): string {
  return `<circle class="${colour}" cx="${x}" cy="${y}" r="5"/>`;
}

function square(x: number, y: number, colour: string): string {
  return `<rect class="${colour}" x="${x - 4}" y="${y - 4}" width="8" height="8"/>`;
}

function diamond(x: number, y: number, colour: string): string {
  return `<path class="${colour}" d="M${x} ${y - 6}l6 6-6 6-6-6z"/>`;
}
