import { isLoopback } from '../../kit/addresses.ts';
import { parseOperatorTokens } from '../../kit/operator-tokens.ts';
import { changingSecret, pemPath, reading, setting, text, type ValuesOf, wholeNumber } from '../../kit/settings.ts';

/** The settings of the operators' port. */
export const operationSettings = {
  adminHost: setting(
    'MARINA_FIX_ADMIN_HOST',
    "the address the operators' port listens on; it needs TLS unless this is a loopback address",
    '127.0.0.1',
    text(/.+/, 'an address'),
  ),
  adminPort: setting(
    'MARINA_FIX_ADMIN_PORT',
    "the operators' gRPC port, which listens if there are operators; 0: any free one",
    '50062',
    wholeNumber(0, 65_535),
  ),
  operators: setting(
    'MARINA_FIX_OPERATOR_TOKENS',
    "operators and their tokens; none: there is no operators' port",
    '',
    changingSecret(
      reading(
        'name:token pairs, or lines of `operator-token`, separated by commas or line breaks',
        parseOperatorTokens,
      ),
    ),
  ),
  adminTlsCertificate: pemPath('MARINA_FIX_ADMIN_TLS_CERT_FILE', "the certificate of the operators' port"),
  adminTlsKey: pemPath('MARINA_FIX_ADMIN_TLS_KEY_FILE', "the private key of the operators' port's certificate"),
  adminTlsAuthorities: pemPath(
    'MARINA_FIX_ADMIN_TLS_CLIENT_CA_FILE',
    "the authorities of operators' certificates; none: operators need no certificate",
  ),
};

export type OperationConfig = ValuesOf<typeof operationSettings>;

/** Returns the faults of these settings together. */
export function operationProblems(config: OperationConfig): string[] {
  const { adminHost, adminTlsCertificate, adminTlsKey, adminTlsAuthorities } = config;
  const speaksTls = adminTlsCertificate !== undefined;
  return [
    ...(speaksTls === (adminTlsKey !== undefined)
      ? []
      : ['MARINA_FIX_ADMIN_TLS_CERT_FILE and MARINA_FIX_ADMIN_TLS_KEY_FILE must be set together']),
    ...(adminTlsAuthorities === undefined || speaksTls
      ? []
      : ['MARINA_FIX_ADMIN_TLS_CLIENT_CA_FILE needs MARINA_FIX_ADMIN_TLS_CERT_FILE']),
    ...(speaksTls || adminHost === undefined || isLoopback(adminHost)
      ? []
      : [
          "MARINA_FIX_ADMIN_HOST must be a loopback address, or the operators' port must speak TLS: " +
            'set MARINA_FIX_ADMIN_TLS_CERT_FILE and MARINA_FIX_ADMIN_TLS_KEY_FILE',
        ]),
  ];
}
