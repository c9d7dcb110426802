import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { portVariables } from '../../src/sandbox/processes.ts';

describe("the ports of the sandbox's gateway", () => {
  it("the gateway's ports are those that were asked for, and after a crash those that it had", () => {
    const asked = { rest: 0, grpc: 9090, admin: 0, ops: 9300 } as Parameters<typeof portVariables>[0];
    const variables = (rest: string, grpc: string, admin: string, ops: string) => ({
      ...{ MARINA_REST_PORT: rest, MARINA_GRPC_PORT: grpc },
      ...{ MARINA_ADMIN_PORT: admin, MARINA_OPS_PORT: ops },
    });
    assert.deepEqual(portVariables(asked, undefined), variables('0', '9090', '0', '9300'));
    const had = { restPort: 41_001, grpcPort: 9090, adminPort: 41_003, opsPort: 9300 };
    assert.deepEqual(portVariables(asked, had), variables('41001', '9090', '41003', '9300'));
  });
});
