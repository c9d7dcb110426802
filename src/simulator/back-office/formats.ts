import type { ApplicationFields } from '../../gen/marina/broker/v1/applications_pb.ts';

/** The form of a customer's number that the broker takes, in the order of the fields. */
interface Format {
  readonly field: string;
  readonly read: (fields: ApplicationFields) => string;
  readonly form: RegExp;
}

/** A number of Nigeria with its country's code or a leading zero, or one of another country with its code. */
const phone = /^(?:0[1-9]\d{9}|\+234[1-9]\d{9}|\+(?!234)[1-9]\d{7,14})$/;
/** A Bank Verification Number (BVN) and a National Identification Number (NIN) have 11 digits. */
const elevenDigits = /^\d{11}$/;

const formats: readonly Format[] = [
  { field: 'phone', read: (fields) => fields.phone, form: phone },
  { field: 'bvn', read: (fields) => fields.bvn, form: elevenDigits },
  { field: 'next_of_kin_phone', read: (fields) => fields.nextOfKinPhone, form: phone },
  { field: 'nin', read: (fields) => fields.nin, form: elevenDigits },
  // The Central Bank's code has 3 digits, 5 for some small banks, 9 with the branch. The code for instant payments has 6.
  { field: 'bank_code', read: (fields) => fields.bankCode, form: /^(?:\d{3}|\d{5,6}|\d{9})$/ },
  // A Nigeria Uniform Bank Account Number (NUBAN).
  { field: 'bank_account_number', read: (fields) => fields.bankAccountNumber, form: /^\d{10}$/ },
];

/** Characters between which people write a number's digits. */
const separators = /[ ().-]/g;

/**
 * Returns the first field with a number that cannot be one. A value with any letter is taken for the placeholder that it is, because
 * nobody should send a customer's numbers to a sandbox.
 */
export function malformedNumber(fields: ApplicationFields): string | undefined {
  return formats.find(({ read, form }) => {
    const value = read(fields);
    return value !== '' && !/\p{L}/u.test(value) && !form.test(value.replace(separators, ''));
  })?.field;
}
