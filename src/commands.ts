import { setFlagsFromString } from 'node:v8';
import { gatewayCommands } from './gateway/app/commands.ts';

// Live data takes 45 MiB, but by default V8 lets some 150 MiB of garbage gather before it collects.
setFlagsFromString('--heap-growing-percent=80');

const [command = 'serve', ...args] = process.argv.slice(2);
const ofGateway = Object.hasOwn(gatewayCommands, command) ? gatewayCommands[command] : undefined;

if (ofGateway !== undefined) {
  await ofGateway(args);
} else if (command === 'fix') {
  const { fixCommand } = await import('./fix-adapter/command.ts');
  process.exitCode = await fixCommand(args, process.env);
} else if (command === 'broker-check') {
  const { brokerCheckCommand } = await import('./broker-check/command.ts');
  process.exitCode = await brokerCheckCommand(args);
} else {
  console.error(
    `unknown command ${command}: use serve, migrate, restored, archive, keys, operator-token, fix, broker-check or config`,
  );
  process.exitCode = 2;
}
