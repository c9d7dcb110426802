import type { Panel } from './dashboards.ts';

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [atSeconds: number, value: number])[];
}

export interface DrawnPanel {
  readonly panel: Panel;
  readonly lines: readonly Line[];
  /** Why it has no line, if it has none. */
  readonly emptyBecause?: string | undefined;
}

const unitWidth = 40;
const unitHeight = 24;
const head = 48;
/** The most lines in a panel: those with the largest values. */
const maxLines = 6;

/** Draws a dashboard: where its panels lie, and what they showed in a period. */
export function drawDashboard(
  { title, description }: { readonly title: string; readonly description: string },
  panels: readonly DrawnPanel[],
  [from, to]: readonly [number, number],
): string {
  const height = head + Math.max(...panels.map(({ panel: { gridPos: g } }) => g.y + g.h)) * unitHeight;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${24 * unitWidth} ${height}" role="img" aria-label="${escaped(title)}">
<style>
  text { font: 10px system-ui, sans-serif; fill: #59636e; font-variant-numeric: tabular-nums }
  .title { font-weight: 600; font-size: 12px; fill: #1f2328 } .big { font-size: 15px } .value { font-size: 26px; fill: #1f2328 }
  .ground { fill: #fff } .panel { fill: none; stroke: #d1d9e0 } .faint { stroke: #d1d9e0; stroke-width: .5 }
  .line { fill: none; stroke-width: 1.3 }
  .c0 { --c: #0969da } .c1 { --c: #bc4c00 } .c2 { --c: #1a7f37 } .c3 { --c: #8250df } .c4 { --c: #bf3989 } .c5 { --c: #6e7781 }
  .line { stroke: var(--c) } .dot { fill: var(--c) }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 } .title, .value { fill: #f0f6fc } .ground { fill: #0d1117 } .panel, .faint { stroke: #3d444d }
    .c0 { --c: #4493f8 } .c1 { --c: #f0883e } .c2 { --c: #3fb950 } .c3 { --c: #ab7df8 } .c4 { --c: #db61a2 } .c5 { --c: #9198a1 }
  }
</style>
<rect class="ground" width="${24 * unitWidth}" height="${height}"/>
<text class="title big" x="8" y="20">${escaped(title)}</text>
<text x="8" y="38">${escaped(description)} Shown: ${Math.round(to - from)} s of a test.</text>
${panels.map((panel) => drawPanel(panel, [from, to])).join('\n')}
</svg>
`;
}

function drawPanel({ panel, lines, emptyBecause }: DrawnPanel, period: readonly [number, number]): string {
  const { x, y, w, h } = panel.gridPos;
  const [width, height] = [w * unitWidth - 8, h * unitHeight - 8];
  const inner = panel.type === 'stat' ? drawValue(panel, lines) : drawLines(panel, lines, width, height, period);
  const empty = wrapped(`No line: ${emptyBecause ?? 'nothing happened'}.`, Math.floor(width / 5.4));
  return `<g transform="translate(${x * unitWidth + 4} ${head + y * unitHeight + 4})">
<rect class="panel" width="${width}" height="${height}" rx="4"/><text class="title" x="8" y="17">${escaped(panel.title)}</text>
${lines.length > 0 ? inner : empty.map((text, row) => `<text x="8" y="${44 + row * 14}">${escaped(text)}</text>`).join('')}
</g>`;
}

function drawValue({ fieldConfig }: Panel, [line]: readonly Line[]): string {
  const value = line?.points.at(-1)?.[1] ?? 0;
  return `<text class="value" x="8" y="56">${escaped(shown(value, fieldConfig.defaults.unit))}</text>`;
}

function drawLines(
  { fieldConfig }: Panel,
  all: readonly Line[],
  width: number,
  height: number,
  [from, to]: readonly [number, number],
): string {
  const largest = ({ points }: Line) => Math.max(...points.map(([, value]) => value));
  const lines = [...all].sort((a, b) => largest(b) - largest(a)).slice(0, maxLines);
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value));
  const most = Math.max(...values, 0);
  const least = Math.min(...values, 0);
  const top = most === least ? most + 1 : most;
  const [left, right, above, below] = [48, 8, 26, 14 + 12 * Math.ceil(lines.length / 2)];
  const [plotWidth, plotHeight] = [width - left - right, height - above - below];
  const px = (at: number) => (left + ((at - from) / (to - from)) * plotWidth).toFixed(1);
  const py = (value: number) => (above + (1 - (value - least) / (top - least)) * plotHeight).toFixed(1);
  const ticks = [least, (least + top) / 2, top].map(
    (value) =>
      `<path class="faint" d="M${left} ${py(value)}h${plotWidth}"/><text x="${left - 4}" y="${Number(py(value)) + 3}" text-anchor="end">${escaped(shown(value, fieldConfig.defaults.unit))}</text>`,
  );
  const paths = lines.map(({ points }, index) => {
    const path = points.map(([at, value], step) => `${step === 0 ? 'M' : 'L'}${px(at)} ${py(value)}`).join('');
    return `<path class="line c${index}" d="${path}"/>`;
  });
  const columns = lines.length === 1 ? 1 : 2;
  const maxLetters = Math.floor(width / columns / 5.6) - 3;
  const names = lines.map(({ name }, index) => {
    const x = 8 + (index % 2) * (width / 2);
    const y = height - 12 * (Math.ceil(lines.length / 2) - Math.floor(index / 2)) + 4;
    const text = name.length > maxLetters ? `${name.slice(0, maxLetters)}…` : name;
    return `<circle class="dot c${index}" cx="${x + 3}" cy="${y - 3}" r="3"/><text x="${x + 10}" y="${y}">${escaped(text)}</text>`;
  });
  return [...ticks, ...paths, ...names].join('');
}

const suffixes: Readonly<Record<string, string>> = { s: ' s', reqps: '/s', ops: '/s', short: '' };

function shown(value: number, unit: string): string {
  if (unit === 'bool_yes_no') return value === 0 ? 'no' : 'yes';
  if (unit === 'percentunit') return `${short(value * 100)} %`;
  if (unit === 'bytes') return `${short(value / 1_048_576)} MiB`;
  if (unit === 's' && Math.abs(value) >= 3_600) return `${short(value / 3_600)} h`;
  if (unit === 's' && value !== 0 && Math.abs(value) < 1) return `${short(value * 1_000)} ms`;
  return `${short(value)}${suffixes[unit] ?? ` ${unit}`}`;
}

function short(value: number): string {
  return String(Number(value.toPrecision(Math.abs(value) < 1 ? 2 : 3)));
}

function wrapped(text: string, most: number): string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? '';
    if (last.length + word.length + 1 > most) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
