import { ApiError } from '../../lib/errors.ts';
import type { Operation } from '../operations.ts';
import { compileRoute, type Route } from './route.ts';

/** What a request asks for: a route, and the texts in the places of its path's parameters. */
export interface Match {
  readonly operation: Operation;
  readonly route: Route;
  readonly pathTexts: readonly string[];
}

/** The routing table of the operations' annotations. */
export class Routes {
  readonly #root = new Node();

  constructor(operations: readonly Operation[]) {
    for (const operation of operations) {
      if (operation.http === undefined) continue;
      const node = this.#root.at(operation.http.segments.map((segment) => typeof segment === 'string' && segment));
      const { method } = operation.http;
      if (node.methods.has(method)) throw new Error(`${operation.name}: its path and method are another's too`);
      node.methods.set(method, compileRoute(operation));
    }
  }

  /**
   * Finds what a method and path mean. A path is taken letter by letter: no slash too many, no dots, no other case, no
   * percent-encoding in its fixed parts; and a fixed segment beats a parameter. Throws `not_found` or
   * `method_not_allowed`.
   */
  find(method: string, path: string): Match {
    const pathTexts: string[] = [];
    let node = path.startsWith('/') ? this.#root : undefined;
    for (let from = 1; node !== undefined && from > 0; ) {
      const slash = path.indexOf('/', from);
      const segment = slash === -1 ? path.slice(from) : path.slice(from, slash);
      node = node.literals.get(segment) ?? parameter(node, segment, pathTexts);
      from = slash + 1;
    }
    if (node === undefined || node.methods.size === 0) throw new ApiError('not_found');
    const route = node.methods.get(method);
    if (route === undefined) throw new ApiError('method_not_allowed', { allow: [...node.methods.keys()] });
    return { operation: route.operation, route, pathTexts };
  }
}

/** A place in the tree of paths. */
class Node {
  readonly literals = new Map<string, Node>();
  readonly methods = new Map<string, Route>();
  parameter: Node | undefined;

  /** The place below this one at a path; false stands for a parameter. */
  at(segments: readonly (string | false)[]): Node {
    const [segment, ...rest] = segments;
    if (segment === undefined) return this;
    const existing = segment === false ? this.parameter : this.literals.get(segment);
    const next = existing ?? new Node();
    if (segment === false) this.parameter = next;
    else this.literals.set(segment, next);
    return next.at(rest);
  }
}

function parameter(node: Node, segment: string, pathTexts: string[]): Node | undefined {
  if (node.parameter === undefined) return undefined;
  const text = segment.includes('%') ? decodeSegment(segment) : segment;
  if (text === '' || text === '.' || text === '..' || text.includes('/')) return undefined;
  pathTexts.push(text);
  return node.parameter;
}

/** A segment that cannot be decoded stays as it is: with its percent sign it is no value any parameter takes. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return /%2f/i.test(segment) ? '/' : segment;
  }
}
