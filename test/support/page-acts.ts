import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type DescMethod, type DescService, getOption, hasOption } from '@bufbuild/protobuf';
import { http } from '../../src/gen/google/api/annotations_pb.ts';
import { operator_call as operatorCall } from '../../src/gen/marina/options/v1/options_pb.ts';
import { type Block, commandsIn } from './page-blocks.ts';

/** The calls and commands of a block: those that only look, and those that change something. */
export interface BlockCalls {
  readonly looks: readonly string[];
  readonly acts: readonly string[];
}

/** Commands of a shell that change a gateway, its machine or its database. */
const otherActs: readonly RegExp[] = [
  /\bsrc\/main\.js (?:migrate|restored|archive write|keys (?:seal|reseal))\b/,
  /\bsystemctl (?:start|stop|restart|enable|disable)\b/,
  /\bmake drill\b/,
  /\bmariadb\b[\s\S]*-e\s[\s\S]*\b(?:DELETE|UPDATE|INSERT|DROP)\b/,
];
const sendsBody = /\bcurl\b[\s\S]*\s(?:-d|--data\S*|-F|-T|-X\s*(?:POST|PUT|PATCH|DELETE))\s/;
const oneFunction = /^(\w+)\(\) \{[\s\S]*\}\s*$/;

/** Tells which calls of pages change something, by what the protos say of each method. */
export class PageCalls {
  private constructor(private readonly services: ReadonlyMap<string, DescService>) {}

  static async load(): Promise<PageCalls> {
    const services: DescService[] = [];
    for (const name of ['admin', 'fix', 'gateway', 'simulator']) {
      const folder = join(import.meta.dirname, '../../src/gen/marina', name, 'v1');
      for (const file of readdirSync(folder).sort()) {
        const parts: Record<string, unknown> = await import(join(folder, file));
        services.push(...Object.values(parts).filter(isService));
      }
    }
    // Of two services with one name, an operator's comes first.
    return new PageCalls(new Map(services.reverse().map((service) => [service.name, service])));
  }

  /** The calls of each of a page's blocks. A function that a block defines acts only where a later line uses it. */
  ofPage(blocks: readonly Block[]): BlockCalls[] {
    const sending = new Set<string>();
    const servicesOf = new Map([['call', 'Controls']]);
    return blocks.map((block) => {
      const looks: string[] = [];
      const acts: string[] = [];
      for (const { lines } of commandsIn(joined(block))) {
        const command = lines.join('\n');
        const [, defined] = oneFunction.exec(command) ?? [];
        if (defined !== undefined) {
          const [, service] = /\b([A-Z]\w+)\/\$1/.exec(command) ?? [];
          if (service !== undefined) servicesOf.set(defined, service);
          else if (sendsBody.test(command)) sending.add(defined);
          continue;
        }
        const named = this.methodsIn(command, servicesOf);
        for (const method of named) {
          (onlyReads(method) ? looks : acts).push(`${method.parent.name}/${method.name}`);
        }
        if (named.length > 0) continue;
        if (sendsBody.test(command)) acts.push('a request with a body');
        for (const name of sending) if (new RegExp(`(?:^|[\\s(;|&])${name} `).test(command)) acts.push(name);
        for (const act of otherActs) acts.push(...(act.exec(command)?.slice(0, 1) ?? []));
      }
      return { looks, acts };
    });
  }

  /** The method of a name such as `marina.admin.v1.Trading/PauseTrading`; undefined: there is none. */
  method(path: string): DescMethod | undefined {
    const [, service = '', name = ''] = /(\w+)\/(\w+)$/.exec(path) ?? [];
    return this.services.get(service)?.methods.find((method) => method.name === name);
  }

  private methodsIn(command: string, servicesOf: ReadonlyMap<string, string>): DescMethod[] {
    const paths = [...command.matchAll(/\b[A-Z]\w+\/[A-Z]\w+\b/g)].map(([path]) => path);
    const named = [...servicesOf].flatMap(([word, service]) =>
      [...command.matchAll(new RegExp(`\\b${word} ([A-Z]\\w+)`, 'g'))].map(([, name]) => `${service}/${name}`),
    );
    return [...paths, ...named].flatMap((path) => {
      if (!this.services.has(path.split('/')[0] ?? '')) return [];
      const method = this.method(path);
      assert.ok(method !== undefined, `there is no call ${path}`);
      return [method];
    });
  }
}

/** Whether a method changes nothing and sends nothing. */
export function onlyReads(method: DescMethod): boolean {
  if (hasOption(method, operatorCall)) return getOption(method, operatorCall).readsOnly;
  if (hasOption(method, http)) return getOption(method, http).pattern.case === 'get';
  return /^Get/.test(method.name);
}

/** A block of which a request that goes on in further lines is one line. */
function joined(block: Block): Block {
  const lines: string[] = [];
  let open = false;
  for (const line of block.lines) {
    if (open) lines.push(`${lines.pop()} ${line}`);
    else lines.push(line);
    open = ((lines.at(-1) ?? '').match(/'/g)?.length ?? 0) % 2 === 1;
  }
  return { ...block, lines };
}

function isService(part: unknown): part is DescService {
  return typeof part === 'object' && part !== null && 'kind' in part && part.kind === 'service';
}
