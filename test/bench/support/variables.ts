/** The settings that gateways are measured with. */
export const benchVariables = {
  MARINA_LOG_LEVEL: 'warn',
  MARINA_DATABASE_POOL: '32',
  MARINA_SUBMIT_TIMEOUT_MS: '10000',
};
