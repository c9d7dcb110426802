import { MortalReplicas } from '../../support/model/mortal.ts';
import { mortalCommands } from '../../support/model/mortal-commands.ts';
import { describeSequences } from '../../support/model/sequences.ts';

describeSequences('whatever a partner, operators and the exchange do while replicas die and links break', {
  usually: 12,
  maxAtOnce: 2,
  start: () => MortalReplicas.start(),
  further: mortalCommands,
});
