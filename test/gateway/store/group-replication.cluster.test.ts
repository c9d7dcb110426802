import { describeFaults } from '../../support/clusters/faults.ts';
import { GroupCluster } from '../../support/clusters/group-replication.ts';

describeFaults('Group Replication', () => GroupCluster.start({ apart: true }));
