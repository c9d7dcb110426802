import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Connection, createConnection } from 'mysql2/promise';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { type Finding, findDifference, type TwoDatabases } from '../../support/scale/apart.ts';
import { LookAlikes, nowSeconds, otherPartners, ownPartner } from '../../support/scale/look-alikes.ts';
import { knownShapes } from '../../support/scale/registry.ts';
import { isListed } from '../../support/scale/several-partners.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';

/**
 * Conditions on a partner that these rows cannot show the lack of: the row that a guard compares whole, rows that are also
 * joined by an id that no two partners have, and copies that leave what is there already.
 */
const maxUnseen = 49;

describe('a statement for one partner', () => {
  const made: TestDatabase[] = [];
  let databases: TwoDatabases;
  let rows: LookAlikes;
  let findings: (Finding & { shape: string })[];

  async function open(partners: readonly string[]): Promise<Connection> {
    const database = await createTestDatabase();
    made.push(database);
    await migrate(database.url);
    const options = { multipleStatements: true, timezone: 'Z', dateStrings: true, supportBigNumbers: true };
    const connection = await createConnection({ uri: database.url, ...options });
    await connection.query(`SET SESSION timestamp = ${nowSeconds}, foreign_key_checks = 0`);
    rows ??= await LookAlikes.load(connection, database.name, knownShapes());
    await rows.fill(connection, partners);
    return connection;
  }

  before(async () => {
    databases = { alone: await open([ownPartner]), beside: await open([...otherPartners, ownPartner]) };
    findings = [];
    for (const shape of knownShapes()) {
      // An INSERT of values names its partner in them.
      if (rows.ofPartnersIn(shape).length === 0 || / VALUES \?$/.test(shape)) continue;
      const finding = await findDifference(databases, shape, rows).catch((cause) => {
        throw new Error(`cannot be run: ${shape}`, { cause });
      });
      // A statement over several partners is listed, with the reason, unless its values name the partner.
      if (!isListed(shape) || finding.isOfPartner) findings.push({ ...finding, shape });
    }
  });
  after(async () => {
    for (const connection of [databases?.alone, databases?.beside]) await connection?.end();
    await Promise.all(made.map((database) => database.drop()));
  });

  it('a statement for one partner reads and changes the same rows when others have rows that look the same', () => {
    assert.ok(findings.length > 200, `${findings.length} statements were run`);
    assert.deepEqual(
      findings.flatMap(({ differs }) => differs ?? []),
      [],
    );
  });

  it('a statement that lacks one of its conditions on the partner is noticed', () => {
    const unseen = findings.flatMap((finding) => finding.unseen);
    assert.ok(unseen.length <= maxUnseen, `${unseen.length} are not:\n${unseen.join('\n')}`);
  });
});
