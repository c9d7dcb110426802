import { describeFaults } from './support/faults.ts';
import { GaleraCluster } from './support/galera.ts';

describeFaults('Galera', () => GaleraCluster.start({ apart: true }));
