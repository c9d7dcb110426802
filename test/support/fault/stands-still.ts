/**
 * Freezes itself in a partner's transaction, after it has the partner's lock: arguments are the database's URL and the
 * partner. Once it goes on, it writes another name, and says how that ended.
 */
import { openDatabase } from '../../../src/gateway/store/database.ts';
import { lockPartner } from '../../../src/gateway/store/partner-transaction.ts';
import { statement } from '../../../src/gateway/store/statement.ts';

const [url = '', partnerId = ''] = process.argv.slice(2);
const database = await openDatabase({ url, environment: 'sandbox', poolSize: 2 });
const ended = await database
  .transaction([lockPartner(partnerId)], () => {
    process.stdout.write('locked\n');
    process.kill(process.pid, 'SIGSTOP');
    const write = statement('UPDATE partners SET name = ? WHERE id = ?', 'written late', partnerId);
    return { writes: [write], result: 'written' };
  })
  .catch((error: Error) => error.name);
process.stdout.write(`${ended}\n`);
await database.close();
