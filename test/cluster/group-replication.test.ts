import { describeFaults } from './support/faults.ts';
import { GroupCluster } from './support/group-replication.ts';

describeFaults('Group Replication', () => GroupCluster.start({ apart: true }));
