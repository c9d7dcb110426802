import { type DescField, type DescMethod, getOption } from '@bufbuild/protobuf';
import { http } from '../gen/google/api/annotations_pb.ts';
import type { FileBody } from './file-body.ts';

/** An operation's place in REST, read from its `google.api.http` annotation. */
export interface HttpBinding {
  readonly method: string;
  /** The path's segments in order: a fixed text, or the request field the segment fills. */
  readonly segments: readonly (string | DescField)[];
  readonly pathFields: readonly DescField[];
  readonly queryFields: readonly DescField[];
  readonly bodyFields: readonly DescField[];
  /** What a request's body is: the fields in JSON, one field's bytes as they are, or nothing that is looked at. */
  readonly body: 'json' | 'file' | 'none';
}

/**
 * Reads the annotation; undefined when the operation has none and so is not served over REST. Throws on what our
 * router has no form for, so that a proto it cannot serve stops the start instead of answering 404.
 */
export function httpBinding(method: DescMethod, file?: FileBody): HttpBinding | undefined {
  const rule = getOption(method, http);
  const verb = rule.pattern.case;
  if (verb === undefined) return undefined;
  const name = `${method.parent.name}.${method.name}`;
  if (verb === 'custom' || rule.additionalBindings.length > 0) throw new Error(`${name}: unsupported HTTP binding`);
  const body = bodyOf(name, rule.body, file);
  const segments = readSegments(method, rule.pattern.value);
  const pathFields = segments.filter((segment) => typeof segment !== 'string');
  const others = method.input.fields.filter((field) => !pathFields.includes(field));
  const isRest = ({ localName }: DescField) => localName !== file?.contentKey && localName !== file?.mediaTypeKey;
  if (body === 'file' && others.some(isRest)) throw new Error(`${name}: beside a file there is only the path`);
  return {
    method: verb.toUpperCase(),
    segments,
    pathFields,
    queryFields: body === 'none' ? others : [],
    bodyFields: body === 'json' ? others : [],
    body,
  };
}

function bodyOf(name: string, body: string, file: FileBody | undefined): HttpBinding['body'] {
  if (file !== undefined && body === file.content) return 'file';
  if (file !== undefined || (body !== '' && body !== '*')) {
    throw new Error(`${name}: a body is the whole message, a file or nothing`);
  }
  return body === '*' ? 'json' : 'none';
}

function readSegments(method: DescMethod, path: string): (string | DescField)[] {
  if (!path.startsWith('/')) throw new Error(`${path}: a path begins with a slash`);
  return path
    .slice(1)
    .split('/')
    .map((segment) => {
      if (!segment.includes('{')) return segment;
      const field = method.input.fields.find(({ name }) => segment === `{${name}}`);
      if (field === undefined) throw new Error(`${path}: ${segment} is not a field of ${method.input.typeName}`);
      return field;
    });
}
