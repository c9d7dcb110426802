import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { dashboards, dashboardsFolder } from '../support/dashboards.ts';

/** Variables in addition to those that each dashboard has. */
const further = (name: string) => ({ partner: [['partner', 'query']], capacity: [['machines', 'query']] })[name] ?? [];

const page = readFileSync(join(dashboardsFolder, '../operations/dashboards.md'), 'utf8');

// That every query gives a value is shown by integration/dashboards.test.ts.
describe('the dashboards of docs/dashboards', () => {
  it('are there, each with an id of its own, a picture and a place on the page', () => {
    assert.deepEqual(
      dashboards.map(({ name }) => name),
      ['capacity', 'database-and-nats', 'events-and-webhooks', 'fix', 'orders-and-broker', 'overview', 'partner'],
    );
    for (const { name, uid, schemaVersion } of dashboards) {
      assert.equal(uid, `marina-${name}`);
      assert.equal(schemaVersion, 39);
      assert.ok(page.includes(`(../dashboards/${name}.json)`), name);
      assert.ok(page.includes(`(../dashboards/${name}.svg)`), name);
    }
  });

  it('take their data from the Prometheus that is chosen', () => {
    for (const { name, templating, panels } of dashboards) {
      assert.deepEqual(
        templating.list.map((variable) => [variable.name, variable.type]),
        [['datasource', 'datasource'], ['job', 'query'], ...further(name)],
        name,
      );
      for (const { title, datasource, targets } of panels) {
        assert.deepEqual(datasource, { type: 'prometheus', uid: '$' + '{datasource}' }, title);
        for (const { expr } of targets) assert.match(expr, /\{job=~"\$(job|machines)"/, title);
      }
    }
  });

  it('have panels with a title, a unit and a description, that do not lie upon each other', () => {
    for (const { name, panels } of dashboards) {
      const cells = new Set<string>();
      assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, name);
      assert.equal(new Set(panels.map(({ title }) => title)).size, panels.length, name);
      for (const { title, description, type, fieldConfig, gridPos, targets } of panels) {
        assert.ok(title.length > 3 && description.length > 10, `${name}: ${title}`);
        assert.ok(['stat', 'timeseries'].includes(type), title);
        assert.match(fieldConfig.defaults.unit, /^(short|s|reqps|ops|bytes|percentunit|bool_yes_no)$/, title);
        assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
        const { x, y, w, h } = gridPos;
        assert.ok(x >= 0 && x + w <= 24, title);
        for (let cell = 0; cell < w * h; cell += 1) {
          const key = `${x + (cell % w)} ${y + Math.floor(cell / w)}`;
          assert.ok(!cells.has(key), `${name}: ${title} lies upon another`);
          cells.add(key);
        }
      }
    }
  });

  it('have pictures of all their panels', () => {
    for (const { name, panels } of dashboards) {
      const path = join(dashboardsFolder, `${name}.svg`);
      assert.ok(existsSync(path), path);
      const picture = readFileSync(path, 'utf8').replaceAll('&amp;', '&');
      for (const { title } of panels) assert.ok(picture.includes(`>${title}<`), `${name}: ${title}`);
    }
  });
});
