import { describeFaults } from '../../support/clusters/faults.ts';
import { GaleraCluster } from '../../support/clusters/galera.ts';

describeFaults('Galera', () => GaleraCluster.start({ apart: true }));
