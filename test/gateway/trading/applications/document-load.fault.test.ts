import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Cluster } from '../../../support/cluster.ts';
import { loadDocuments } from '../../../support/document-load.ts';
import { slownessNow } from '../../../support/patience.ts';

it('100 documents at once are all delivered, in bounded memory, and orders go on meanwhile', async () => {
  const cluster = await Cluster.start({ MARINA_LOG_LEVEL: 'warn', MARINA_SUBMIT_TIMEOUT_MS: '10000' });
  try {
    const { mostMiB, orderRatio } = await loadDocuments(cluster, 1, 2_000, (await slownessNow()) > 1 ? 4 : 1);
    assert.ok(mostMiB < 600, `${mostMiB} MiB were held`);
    // The bench measures this; here it is only that orders do not wait for documents.
    assert.ok(orderRatio < 5, `an order took ${orderRatio} times as long`);
  } finally {
    await cluster.stop();
  }
});
