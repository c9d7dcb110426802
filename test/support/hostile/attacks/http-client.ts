import { Agent, type ClientRequestArgs, type OutgoingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Attacker } from '../attacker.ts';

export interface HttpRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
}

/** A client of HTTP/1 whose connections come from one address and are watched. */
export class HttpClient {
  readonly #agent: Agent;

  constructor(
    private readonly attacker: Attacker,
    connections: number,
    from = '127.0.0.66',
  ) {
    this.#agent = new (class extends Agent {
      override createConnection({ port }: ClientRequestArgs): Socket {
        const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: from });
        attacker.watch(socket);
        return socket;
      }
    })({ keepAlive: true, maxSockets: connections });
  }

  /** Resolves with the status, or what broke the request off; never rejects. */
  send({ method = 'GET', path, headers = {}, body }: HttpRequest): Promise<string> {
    const url = `http://127.0.0.1:${this.attacker.target.restPort}${path}`;
    return new Promise((resolve) => {
      const sent = request(url, { method, headers, agent: this.#agent, timeout: 40_000 }, (response) => {
        response.on('error', () => resolve('broken off'));
        response.on('end', () => resolve(String(response.statusCode)));
        response.resume();
      });
      sent.on('timeout', () => sent.destroy());
      sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'broken off'));
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
