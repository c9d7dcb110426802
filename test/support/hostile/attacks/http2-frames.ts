/** Attacks by frames of HTTP/2, on each port that speaks gRPC. */
export * from './http2-floods.ts';
export * from './http2-streams.ts';
