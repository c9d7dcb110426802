import { CalmReplicas } from '../../support/model/calm.ts';
import { describeSequences } from '../../support/model/sequences.ts';

describeSequences('whatever a partner, operators and the exchange do in turn', {
  usually: 25,
  start: () => CalmReplicas.start(),
});
