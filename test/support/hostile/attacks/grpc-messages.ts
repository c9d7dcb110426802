import { gzipSync } from 'node:zlib';
import type { Attacker } from '../attacker.ts';
import { callFields, flag, frame, frameType, grpcMessage, headerBlock, settings } from '../http2-wire.ts';
import { crowd, many, type Port, pause } from './crowd.ts';
import { Endings, openSession, rawCall } from './grpc-client.ts';

export * from './grpc-standing.ts';

export const getOrder = '/marina.gateway.v1.Orders/GetOrder';
export const sendDocument = '/marina.gateway.v1.Applications/SendDocument';
export const reflection = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const health = '/grpc.health.v1.Health/Check';
const watchHealth = '/grpc.health.v1.Health/Watch';
const status = '/marina.admin.v1.Diagnostics/GetStatus';

/** Some 1 MB of nothing, in 1 KB. */
const bomb = grpcMessage(gzipSync(Buffer.alloc(1_050_000)), { compressed: 1 });
const gzip = { 'grpc-encoding': 'gzip' };

/** As many uploads as may be open at once, without a key, and then content types that gRPC does not have. */
export function wrongContentTypes(attacker: Attacker, port: Port) {
  const types = ['text/plain', undefined, 'application/grpc-web', '', 'application/json', 'application/grpc; \u0001'];
  const heads = types.map((type) => {
    const fields = callFields(sendDocument).filter(([name]) => name !== 'content-type');
    return headerBlock(type === undefined ? fields : [...fields, ['content-type', type]]);
  });
  const upload = headerBlock(callFields(sendDocument));
  return crowd(attacker, port, {
    connections: 2,
    begin: (wire) =>
      wire.write(...many(160, () => frame(frameType.headers, flag.endHeaders, wire.nextStream(), upload))),
    act: (wire, at) => {
      const head = heads[(at + (wire.nextStream() >> 1)) % heads.length] ?? upload;
      return wire.write(frame(frameType.headers, flag.endHeaders, wire.nextStream(), head));
    },
    pauseMs: 10,
  });
}

/** Small messages that inflate to large ones, on streams whose answers are not taken. */
export function bombsOnReflection(attacker: Attacker, port: Port) {
  return bombs(attacker, port, reflection, 30, 40);
}

/** The same on calls of one message, of which there are many. */
export function bombsOnUnary(attacker: Attacker, port: Port) {
  return bombs(attacker, port, port.port === 'adminPort' ? status : getOrder, 190, 1);
}

export function bombsOnHealth(attacker: Attacker, port: Port) {
  return bombs(attacker, port, watchHealth, 95, 1);
}

export function bombsOnUploads(attacker: Attacker, port: Port) {
  return bombs(attacker, port, sendDocument, 95, 1);
}

function bombs(attacker: Attacker, port: Port, path: string, streams: number, messages: number) {
  const block = headerBlock(callFields(path, gzip));
  const payload = Buffer.concat(many(messages, () => bomb));
  return crowd(attacker, port, {
    connections: 5,
    greeting: settings([[4, 0]]),
    begin: async (wire) => {
      for (let at = 0; at < streams && wire.isOpen; at += 1) {
        const stream = wire.nextStream();
        const pieces = many(Math.ceil(payload.length / 16_384), (piece) =>
          frame(frameType.data, 0, stream, payload.subarray(piece * 16_384, (piece + 1) * 16_384)),
        );
        await wire.write(frame(frameType.headers, flag.endHeaders, stream, block), ...pieces);
      }
    },
    act: () => pause(50),
  });
}

/** Messages that say they are compressed and are not, and encodings nobody has. */
export async function brokenCompression(attacker: Attacker, { port }: Port) {
  const garbage = grpcMessage(Buffer.alloc(100, 0xff), { compressed: 1 });
  const cut = grpcMessage(gzipSync(Buffer.alloc(10_000)).subarray(0, 20), { compressed: 1 });
  const flags = grpcMessage(Buffer.alloc(10), { compressed: 7 });
  const bodies = [garbage, cut, flags];
  const encodings = ['gzip', 'deflate', 'br', 'identity', 'no-such', 'gzip,gzip', ''];
  return calls(attacker, port, (at) => ({
    path: [health, getOrder, reflection][at % 3] ?? health,
    fields: { 'grpc-encoding': encodings[at % encodings.length] ?? 'gzip' },
    body: bodies[at % bodies.length] ?? garbage,
  }));
}

/** Lengths that are not true, and messages larger than may be. */
export function oversizedMessages(attacker: Attacker, port: Port) {
  const paths = [getOrder, sendDocument, reflection, health, watchHealth];
  const announced = [0xffffffff, 0x7fffffff, 16 * 1_048_576, 200_000];
  return crowd(attacker, port, {
    connections: 5,
    act: async (wire, at) => {
      const stream = wire.nextStream();
      const fields = headerBlock(callFields(paths[(at + stream) % paths.length] ?? getOrder));
      const length = announced[stream % announced.length] ?? 0;
      await wire.write(
        frame(frameType.headers, flag.endHeaders, stream, fields),
        frame(frameType.data, 0, stream, grpcMessage(Buffer.alloc(16_000), { length })),
        ...many(3, () => frame(frameType.data, 0, stream, Buffer.alloc(16_000))),
      );
    },
    pauseMs: 5,
  });
}

/** Many messages where one is asked for. */
export function manyMessages(attacker: Attacker, port: Port) {
  const block = headerBlock(callFields(getOrder));
  const messages = Buffer.concat(many(1_000, () => grpcMessage(Buffer.from([0x0a, 1, 0x61]))));
  return crowd(attacker, port, {
    act: (wire) => {
      const stream = wire.nextStream();
      return wire.write(
        frame(frameType.headers, flag.endHeaders, stream, block),
        frame(frameType.data, 0, stream, messages),
        frame(frameType.data, flag.endStream, stream, messages),
      );
    },
    pauseMs: 5,
  });
}

/** Messages in frames of one byte each. */
export function tinyFrames(attacker: Attacker, port: Port) {
  const block = headerBlock(callFields(sendDocument));
  return crowd(attacker, port, {
    begin: async (wire) => {
      const head = grpcMessage(Buffer.alloc(0), { length: 60_000 });
      for (let at = 0; at < 50; at += 1) {
        const stream = wire.nextStream();
        await wire.write(
          frame(frameType.headers, flag.endHeaders, stream, block),
          frame(frameType.data, 0, stream, head),
        );
      }
    },
    act: (wire) =>
      wire.write(...many(500, (at) => frame(frameType.data, 0, 2 * (at % 50) + 1, Buffer.from([at % 256])))),
    pauseMs: 5,
  });
}

/** Metadata that is no UTF-8, no base64, very large, or of very many fields. */
export async function strangeMetadata(attacker: Attacker, { port }: Port) {
  const heads: Record<string, string | string[]>[] = [
    { authorization: '%%%zz%00%ff' },
    { authorization: 'Bearer %E0%A4%A' },
    { authorization: ['Bearer a', 'Bearer b'] },
    { authorization: `Bearer ${'a'.repeat(6_000)}` },
    { 'x-bin': '!!!' },
    { 'grpc-status-details-bin': '%%%', 'authorization-bin': '////' },
    { 'idempotency-key': '\u00ff'.repeat(300) },
    { 'idempotency-key': ['a', 'b', 'c'] },
    { 'grpc-accept-encoding': 'gzip,'.repeat(1_000) },
    { 'x-large': 'y'.repeat(30_000) },
    { traceparent: 'z'.repeat(2_000) },
    { 'x-forwarded-for': '1.1.1.1,'.repeat(700) },
    Object.fromEntries(many(300, (at) => [`x-${at}`, 'y'])),
  ];
  return calls(attacker, port, (at) => ({ path: getOrder, fields: heads[at % heads.length] ?? {} }));
}

/** Times that are none, that are over, and that never end. */
export async function strangeTimeouts(attacker: Attacker, { port }: Port) {
  const timeouts = ['0n', '1n', '-1S', '99999999H', '999999999S', 'S', '1', 'abc', '1e3S', '', '1.5S', '0x1S', '1s'];
  return calls(attacker, port, (at) => ({
    path: [getOrder, health, watchHealth][at % 3] ?? getOrder,
    fields: { 'grpc-timeout': timeouts[at % timeouts.length] ?? '1S' },
  }));
}

/** Methods and services nobody has. */
export async function unknownMethods(attacker: Attacker, { port }: Port) {
  const paths = [
    '/',
    '//',
    '/a',
    '/a/b',
    '/marina.gateway.v1.Orders/',
    '/marina.gateway.v1.Orders/getOrder',
    '/%2e%2e/x',
  ];
  const others = [
    '/marina.admin.v1.Keys/RevokeKey',
    '/grpc.channelz.v1.Channelz/GetServers',
    `/${'s'.repeat(3_000)}/m`,
  ];
  const all = [...paths, ...others];
  return calls(attacker, port, (at) => ({ path: all[at % all.length] ?? '/', fields: {} }));
}

interface RawRequest {
  readonly path: string;
  readonly fields: Record<string, string | string[]>;
  readonly body?: Buffer;
}

/** Makes calls one after another on a few connections, a new one for each that was closed, and counts their endings. */
async function calls(attacker: Attacker, port: Port['port'], make: (at: number) => RawRequest) {
  const endings = new Endings();
  let at = 0;
  const client = async () => {
    while (attacker.isOn) {
      const session = await openSession(attacker, attacker.target[port]);
      while (attacker.isOn && !session.closed && !session.destroyed) {
        const { path, fields, body } = make(at++);
        endings.add(await rawCall(session, path, fields, body, attacker.leftMs + 500));
      }
      session.destroy();
      await pause(20);
    }
  };
  await Promise.all(many(4, client));
  return endings.counts;
}
