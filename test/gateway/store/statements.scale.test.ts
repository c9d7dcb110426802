import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Measured, prepareSession, worstOf } from '../../support/scale/measure.ts';
import { knownShapes } from '../../support/scale/registry.ts';
import { openScaleDatabase, type ScaleDatabase } from '../../support/scale/server.ts';
import { keepStatistics, statistics } from '../../support/scale/statistics.ts';
import { Values } from '../../support/scale/values.ts';

const orders = Number(process.env.ORDERS ?? 1_000_000);

describe(`with ${orders} orders, no statement reads more rows than it may`, () => {
  let database: ScaleDatabase;
  let values: Values;

  before(async () => {
    database = await openScaleDatabase(orders, (line) => process.stderr.write(`  ${line}\n`));
    const { connection, name } = database;
    await keepStatistics(connection, name);
    values = await Values.load(connection, name);
    await prepareSession(connection);
  });
  after(() => database?.close());

  for (const { name, set } of statistics) {
    it(`each statement stays within its bound with statistics ${name}`, async () => {
      const { connection } = database;
      await set(connection, database.name);
      const found: Measured[] = [];
      const failed: string[] = [];
      for (const shape of knownShapes()) {
        try {
          const worst = await worstOf(connection, shape, values);
          if (worst !== undefined) found.push(worst);
        } catch (error) {
          failed.push(`It cannot be run: ${shape}\n  ${(error as Error).message}`);
        }
      }
      report(name, found);
      const tooMany = found.filter(({ read, allowed }) => read > allowed);
      const complaints = [...tooMany.map(describeOne), ...failed];
      assert.ok(complaints.length === 0, `\n${complaints.join('\n')}`);
    });
  }
});

function describeOne({ read, allowed, shape, sql }: Measured): string {
  return `${read} rows instead of at most ${allowed}: ${shape}\n  run as ${sql.slice(0, 1_000)}`;
}

/** Prints the rows that each statement read at most, the largest first, if asked for. */
function report(name: string, found: readonly Measured[]): void {
  if (process.env.MARINA_SCALE_REPORT !== 'true') return;
  const lines = [...found].sort((one, other) => other.read - one.read);
  process.stderr.write(`Rows read by statistics ${name}:\n`);
  for (const { read, allowed, shape } of lines) process.stderr.write(`  ${read} of ${allowed}: ${shape}\n`);
}
