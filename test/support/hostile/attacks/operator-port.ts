/** Attacks on the ports that are not for partners: what harms the others is tried there as well. */
export * from './grpc-messages.ts';
export * from './http2-frames.ts';
export { idleSockets } from './resources.ts';
