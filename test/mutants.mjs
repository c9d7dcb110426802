/**
 * What `make mutants` runs (https://stryker-mutator.io): it changes the code in one small way at a time, and tells which
 * changes no test notices. `make mutants FILES=src/gateway/store/lease.ts TESTS=test/gateway/store/lease.integration.test.ts` looks at some files
 * with some tests; without, the unit tests look at the rules and at all that stores, sends, counts and lets in.
 */
const list = (text, usual) => (text ? text.split(/[ ,]+/) : usual);

export default {
  mutate: list(process.env.FILES, [
    'src/gateway/**/rules.ts',
    'src/gateway/{store,trading/submission,edge/limits,edge/auth,delivery/events,delivery/webhooks}/*.ts',
    'src/kit/addresses.ts',
  ]),
  // An empty text in place of a text: mostly a log line or SQL, which says little.
  mutator: { excludedMutations: ['StringLiteral'] },
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: {
    testFiles: list(process.env.TESTS, [
      'test/gateway/**/*rules.unit.test.ts',
      'test/gateway/{delivery/webhooks,edge/auth,edge/limits,store}/**/*.unit.test.ts',
      'test/gateway/trading/submission/*.unit.test.ts',
      'test/gateway/trading/{applications/document-sends,orders/reports}.unit.test.ts',
      'test/gateway/app/client-address.unit.test.ts',
    ]),
    nodeArgs: ['--require', '{{hookFile}}', '--import', 'tsx', '--test-reporter=tap', '{{testFile}}'],
  },
  coverageAnalysis: 'perTest',
  ignorePatterns: ['.local', 'dist', '/docs', '/proto'],
  tempDirName: '.local/mutants',
  reporters: ['clear-text', 'json', 'html'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: '.local/mutants.json' },
  htmlReporter: { fileName: '.local/mutants.html' },
  timeoutMS: 10_000,
  concurrency: 1,
};
