import { damagedJpeg, marker } from './jpeg-segments.ts';
import { type ImageShape, InvalidImage } from './shape.ts';

/** One colour component of a JPEG. */
export interface Component {
  readonly id: number;
  /** Its samples across and down in each unit of the image. */
  readonly across: number;
  readonly down: number;
}

/** What a JPEG's frame header says. */
export interface Frame extends ImageShape {
  readonly isProgressive: boolean;
  readonly isArithmetic: boolean;
  readonly components: readonly Component[];
  /** What a decoder holds if it must keep all coefficients until the last scan. */
  readonly coefficientBytes: number;
}

/** Kinds of frames that decoders know; the rest are lossless, or in layers of several sizes. */
const sequentialFrames: ReadonlySet<number> = new Set([marker.baseline, marker.extended, marker.arithmetic]);
const progressiveFrames: ReadonlySet<number> = new Set([marker.progressive, marker.progressiveArithmetic]);
const arithmeticFrames: ReadonlySet<number> = new Set([marker.arithmetic, marker.progressiveArithmetic]);

/** Reads the header of a frame. Throws `InvalidImage`. */
export function readFrame(code: number, body: Buffer): Frame {
  const isProgressive = progressiveFrames.has(code);
  if (!sequentialFrames.has(code) && !isProgressive) throw unusual();
  const count = body[5] ?? 0;
  if (body.length !== 6 + 3 * count) throw damagedJpeg();
  if (body[0] !== 8 || ![1, 3, 4].includes(count)) throw unusual();
  const height = body.readUInt16BE(1);
  const width = body.readUInt16BE(3);
  // A height of zero would come later, in a DNL segment: hardly any program shows such a file.
  if (height === 0) throw unusual();
  if (width === 0) throw damagedJpeg();
  const components = readComponents(body);
  const coefficientBytes = coefficientBytesOf(components, width * height);
  const decodingBytes = isProgressive ? coefficientBytes : 0;
  const isArithmetic = arithmeticFrames.has(code);
  return { width, height, components, isProgressive, isArithmetic, coefficientBytes, decodingBytes };
}

/** How many units an image has across and down: the largest component has as many samples in each as it says. */
export function largestSampling(components: readonly Component[]): { readonly across: number; readonly down: number } {
  const across = Math.max(...components.map((component) => component.across));
  const down = Math.max(...components.map((component) => component.down));
  return { across, down };
}

function readComponents(body: Buffer): Component[] {
  const components: Component[] = [];
  for (let at = 6; at < body.length; at += 3) {
    const sampling = body[at + 1] ?? 0;
    const component = { id: body[at] ?? 0, across: sampling >> 4, down: sampling & 15 };
    const isSampled = component.across >= 1 && component.across <= 4 && component.down >= 1 && component.down <= 4;
    if (!isSampled || components.some(({ id }) => id === component.id)) throw damagedJpeg();
    components.push(component);
  }
  return components;
}

/** What an image's coefficients take, two bytes each. */
function coefficientBytesOf(components: readonly Component[], pixels: number): number {
  const largest = largestSampling(components);
  return components.reduce(
    (sum, { across, down }) => sum + (2 * pixels * across * down) / (largest.across * largest.down),
    0,
  );
}

function unusual(): InvalidImage {
  return new InvalidImage('The JPEG file is of a kind that is not generally shown. Save it as an ordinary JPEG.');
}
